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


LENGTHS: dict[str, tuple[Callable[[Tensor, Tensor, Tensor], Tensor], int]] = {
    "length": (lambda i, j, n: j <= i + n, 1),
    "added": (lambda i, j, n: torch.where(i + n >= j, 0.0, float("-inf")), 1),
    "for each head": (lambda i, j, n: (j < i + 1 + n).expand(1, 2, -1, -1), 1),
    "window": (lambda i, j, n: (j <= i + n) & (j > i + n - 4), 2),
}


class Cached(nn.Module):
    """Rows that see a cache of keys up to a length, which ``mask`` compares."""

    def __init__(self, mask: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.mask = mask

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, length: Tensor) -> Tensor:
        row, key = torch.arange(x.shape[1])[:, None], torch.arange(keys.shape[2])[None]
        mask = self.mask(row, key, length)
        return F.scaled_dot_product_attention(heads(x, 2), keys, values, attn_mask=mask)


def cached(
    mask: Callable[[Tensor, Tensor, Tensor], Tensor], rows: int = 3
) -> tuple[torch.fx.Graph, Partition]:
    target, cache = detect_target("cpu"), torch.empty(1, 2, ROWS, WIDTH // 2)
    given = (torch.empty(1, rows, WIDTH), cache, cache.clone(), torch.tensor(5))
    (graph,) = captured(Cached(mask), given, target)
    return graph, partition(graph, target)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", LENGTHS)
def test_the_length_of_a_cache_bounds_the_keys(name: str, rows: int) -> None:
    mask, count = LENGTHS[name]
    graph, found = cached(mask, rows)
    (region,) = found.regions
    assert len(region.workload.program.conditions) == count
    assert not found.left
    check(graph, found)


@pytest.mark.parametrize(
    "mask",
    [
        lambda i, j, n: j * n <= i,
        lambda i, j, n: torch.where(j <= i + n, 0.5, float("-inf")),
        lambda i, j, n: (j <= i + n) | (j == 0),
    ],
)
def test_any_other_mask_of_lengths_is_read(mask) -> None:
    graph, found = cached(mask)
    (region,) = found.regions
    assert not region.workload.program.conditions
    check(graph, found)
