"""Masks that a graph computes become conditions, where they are bands."""

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from tests.scheduler.torch.blocks import heads, joined, values_of  # noqa: E402
from tests.scheduler.torch.translated import agree, computed  # noqa: E402
from tilewright.scheduler.torch.extraction.capture import captured  # noqa: E402
from tilewright.scheduler.torch.regions.partition import Partition, partition  # noqa: E402
from tilewright.spaces.language.program import Program  # noqa: E402
from tilewright.spaces.target import detect_target  # noqa: E402

ROWS, WIDTH = 14, 24
HIDDEN = torch.finfo(torch.float32).min


class Attention(nn.Module):
    """Two layers that share a mask, which ``mask`` computes of the numbers of rows and keys."""

    def __init__(self, mask: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.joint = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mask = mask

    def forward(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        mask = self.mask(place[:, None], place[None])
        for layer in self.joint:
            q, k, v = (heads(part, 2) for part in layer(x).split(WIDTH, 2))
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + self.out(joined(mixed))
        return x


BANDS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], list[str]]] = {
    "causal": (lambda i, j: j <= i, ["a{0} <= a{1}"]),
    "causal, added": (
        lambda i, j: torch.where(j <= i, 0.0, HIDDEN)[None, None].expand(1, 2, -1, -1),
        ["a{0} <= a{1}"],
    ),
    "by triangles": (
        lambda i, j: torch.full((ROWS, ROWS), float("-inf")).triu(1),
        ["a{0} <= a{1}"],
    ),
    "strangers": (lambda i, j: ~(j > i + 2), ["a{0} <= a{1} + 2"]),
    "window": (
        lambda i, j: (j <= i) & (i - j < 4),
        ["a{0} <= a{1}", "a{0} >= a{1} - 3"],
    ),
    "both sides": (
        lambda i, j: ((i - j).abs() <= 2)[None, None],
        ["a{0} <= a{1} + 2", "a{0} >= a{1} - 2"],
    ),
    "all": (lambda i, j: (i + j) >= 0, []),
}
OTHERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "slopes": lambda i, j: (i - j) * -0.5,
    "every second": lambda i, j: (i - j) % 2 == 0,
    "blocks": lambda i, j: i // 4 == j // 4,
    "of each head": lambda i, j: torch.stack((j <= i, j >= i))[None],
}


def parted(mask: Callable[[Tensor, Tensor], Tensor]) -> tuple[torch.fx.Graph, Partition]:
    target = detect_target("cpu")
    (graph,) = captured(Attention(mask), (torch.empty(1, ROWS, WIDTH),), target)
    return graph, partition(graph, target)


def check(graph: torch.fx.Graph, found: Partition) -> None:
    values = values_of(graph)
    for region in found.regions:
        for node, result in zip(region.outputs, computed(region, values), strict=True):
            assert agree(result, values[node]), f"{node}: {region.workload}"


def attentions(found: Partition) -> list[Program]:
    """The programs of regions with a softmax."""
    made = [region.workload.program for region in found.regions]
    return [program for program in made if "exp(" in program.text]


@pytest.mark.parametrize("name", BANDS)
def test_a_band_bounds_the_keys(name: str) -> None:
    mask, conditions = BANDS[name]
    graph, found = parted(mask)
    check(graph, found)
    assert not found.left
    programs = attentions(found)
    assert len(programs) == 2
    for made in programs:
        texts = [str(condition) for condition in made.conditions]
        axes = [axis.removeprefix("a") for axis in made.extent]
        pairs = [(key, row) for key in axes for row in axes]
        assert any(texts == [c.format(*pair) for c in conditions] for pair in pairs), texts


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_mask_is_added(name: str) -> None:
    graph, found = parted(OTHERS[name])
    check(graph, found)
    assert found.left
    assert not any(made.conditions for made in attentions(found))


def test_a_mask_of_inputs_is_read() -> None:
    class Given(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            q = heads(x, 2)
            return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    target = detect_target("cpu")
    (graph,) = captured(Given(), (torch.empty(1, ROWS, WIDTH), torch.empty(ROWS, ROWS)), target)
    found = partition(graph, target)
    assert [len(region.operands) for region in found.regions] == [2]
    assert not any(made.conditions for made in attentions(found))
    check(graph, found)
