"""Random small graphs: whole ones as one program, and their regions."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from tests.scheduler.torch.blocks import values_of  # noqa: E402
from tests.scheduler.torch.translated import agree, check, computed, traced  # noqa: E402
from tilewright.scheduler.torch.regions.partition import partition  # noqa: E402
from tilewright.spaces.target import detect_target  # noqa: E402

SIZE = 6


def _added_in_place(a: Tensor, b: Tensor) -> Tensor:
    made = a.clone()
    made[1:] += b[:-1]
    return made


def _turned(a: Tensor, b: Tensor) -> Tensor:
    first, second = a.chunk(2, -1)
    return a * b + torch.cat((-second, first), -1)


STEPS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "product": lambda a, b: a @ b,
    "product of columns": lambda a, b: a @ b.t(),
    "batches": lambda a, b: torch.einsum("isj,sjk->ik", a.reshape(6, 2, 3), b.reshape(2, 3, 6)),
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - 0.5 * b[0],
    "gate": lambda a, b: a * torch.sigmoid(b),
    "activation": lambda a, b: torch.tanh(a),
    "chosen": lambda a, b: torch.where(a > b, a, 0.25 * b),
    "transposed": lambda a, b: a.t(),
    "flipped": lambda a, b: a.flip(0),
    "rearranged": lambda a, b: a.reshape(2, 3, 6).permute(2, 0, 1).reshape(6, 6),
    "shifted": lambda a, b: torch.cat((a[1:], b[:1])),
    "halves": lambda a, b: torch.cat(a.split(3, 1)[::-1], 1),
    "turned": _turned,
    "written": _added_in_place,
    "means": lambda a, b: a - a.mean(-1, keepdim=True),
    "norm": lambda a, b: a * torch.rsqrt((a * a).mean(-1, keepdim=True) + 1) * b[1],
    "softmax": lambda a, b: (a - a.amax(-1, True)).exp() / a.exp().sum(-1, keepdim=True) + b,
    "greatest": lambda a, b: a.amax(0, keepdim=True) * b,
    "padded": lambda a, b: torch.nn.functional.pad(a[1:, 1:], (1, 0, 0, 1)),
}
random_graphs = settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)


@st.composite
def functions(draw: st.DrawFn) -> Callable[[Tensor, Tensor], list[Tensor]]:
    """A function of a few steps, each of two values before it; some values are read often."""
    count = draw(st.integers(2, 6))
    before = [st.integers(0, place + 1) for place in range(count)]
    names = st.sampled_from(sorted(STEPS))
    steps = [(draw(names), draw(known), draw(known)) for known in before]
    kept = draw(st.integers(2, count + 1))

    def function(x: Tensor, y: Tensor) -> list[Tensor]:
        values = [x, y]
        for name, first, second in steps:
            values.append(STEPS[name](values[first], values[second]))
        return [values[-1] * 1.0, values[kept] + 0.0]

    function.__name__ = str(steps)
    return function


@random_graphs
@given(function=functions())
def test_a_graph_is_one_program(function: Callable) -> None:
    torch.manual_seed(1)
    check(function, torch.rand(SIZE, SIZE), torch.rand(SIZE, SIZE))


@random_graphs
@given(function=functions())
def test_regions_of_a_graph_compute_their_outputs(function: Callable) -> None:
    """Each region alone, of the values that torch has for its operands."""
    graph = traced(function, (torch.rand(SIZE, SIZE), torch.rand(SIZE, SIZE))).graph
    found = partition(graph, detect_target("cpu"))
    values = values_of(graph)
    taken = [output for region in found.regions for output in region.outputs]
    assert len(set(taken)) == len(taken)
    for region in found.regions:
        for node, result in zip(region.outputs, computed(region, values), strict=True):
            assert agree(result, values[node]), f"{node}: {region.workload}"
        assert not set(region.operands) & region.nodes
