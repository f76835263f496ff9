from collections.abc import Callable
from functools import cache

import pytest

torch = pytest.importorskip("torch")

from functorch.compile import make_boxed_func  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402

from tests.scheduler.torch import blocks  # noqa: E402
from tests.scheduler.torch.translated import agree, computed, traced  # noqa: E402
from tilewright.scheduler.torch.extraction.capture import captured  # noqa: E402
from tilewright.scheduler.torch.kernels.open_keys import family_of_key, is_open  # noqa: E402
from tilewright.scheduler.torch.regions.partition import SLOW_FOR_TWO, Partition, partition  # noqa: E402
from tilewright.scheduler.torch.translation.attention import BY_CPU as ATTENTION  # noqa: E402
from tilewright.scheduler.torch.translation.nodes import name_of  # noqa: E402
from tilewright.scheduler.torch.translation.rules import Kind  # noqa: E402
from tilewright.scheduler.torch.translation.table import kind_of  # noqa: E402
from tilewright.spaces.registry import space_for  # noqa: E402
from tilewright.spaces.target import detect_target  # noqa: E402

TARGET = detect_target("cpu")
LEFT = {
    "mlp": 0,
    "bert": 0,
    "gpt2": 0,
    "llama": 10,
    "moe": 1,
    "vit": 0,
    "bottleneck": 12,
    "convnext": 0,
    "decoder": 0,
}
"""How many nodes torch computes of each block: RoPE of queries and keys; a copy of the
first weights of the experts; the factors of batch norms."""


@cache
def parted(name: str) -> tuple[torch.fx.Graph, Partition]:
    module, args = blocks.BLOCKS[name]()
    (graph,) = captured(module.eval(), args, TARGET)
    return graph, partition(graph, TARGET)


@pytest.mark.parametrize("name", blocks.BLOCKS)
def test_every_product_of_a_block_is_in_a_region_and_little_is_left(name: str) -> None:
    graph, found = parted(name)
    products = {node for node in graph.nodes if kind_of(node) is Kind.PRODUCT}
    assert products <= set().union(*(region.nodes for region in found.regions))
    assert not found.refusals
    assert len(found.left) == LEFT[name], [node.name for node in found.left]


@pytest.mark.parametrize(
    ("name", "refused"), [("gpt2", {ATTENTION}), ("bottleneck", {"convolution"})]
)
def test_one_axis_of_any_extent_is_open_and_more_are_left_to_torch(name: str, refused) -> None:
    """Rows of products are one axis; a text's own rows are two of attention."""
    graph = with_symbols(*blocks.BLOCKS[name]())
    found = partition(graph, TARGET)
    assert {name_of(refusal.anchor) for refusal in found.refusals} == refused
    assert all("a dynamic size" in refusal.reason for refusal in found.refusals)
    assert all(is_open(region.key) for region in found.regions)
    assert len(found.regions) == (4 if name == "gpt2" else 0)
    nodes = {node for region in found.regions for node in found.in_graph(region).nodes}
    assert nodes <= set(graph.nodes)


def with_symbols(module: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> torch.fx.Graph:
    """Return the graph of a module whose sizes are symbols."""
    graphs: list[torch.fx.Graph] = []

    def keep(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable:
        graphs.append(module.graph)
        return make_boxed_func(module.forward)

    with torch.no_grad():
        torch.compile(module.eval(), backend=aot_autograd(fw_compiler=keep), dynamic=True)(*args)
    return graphs[0]


class TotalOfRows(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(32, 48))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ self.weight).exp().sum(0)


def test_rows_that_are_reduced_have_no_open_kernel_and_products_before_them_have() -> None:
    found = partition(with_symbols(TotalOfRows(), (torch.randn(20, 32),)), TARGET)
    assert [family_of_key(region.key).independent for region in found.regions] == [True]
    assert all("a dynamic size" in refusal.reason for refusal in found.refusals)


@pytest.mark.parametrize("name", ["bert", "convnext"])
def test_results_of_bfloat16_are_written_as_such(name: str) -> None:
    """Norms compute in float32, but read what regions before them have rounded."""
    module, args = blocks.BLOCKS[name]()
    (graph,) = captured(module.eval(), args, TARGET, dtype=torch.bfloat16)
    found = partition(graph, TARGET)
    outputs = [array for region in found.regions for array in region.workload.outputs]
    assert {array.dtype for array in outputs} == {"bfloat16"}
    assert not found.left


@pytest.mark.parametrize("name", blocks.BLOCKS)
def test_regions_compute_what_torch_computes(name: str) -> None:
    """Values go through the graph once in float64, and each region's operands are taken there."""
    graph, found = parted(name)
    values = blocks.values_of(graph)
    assert found.regions
    for region in found.regions:
        for node, result in zip(region.outputs, computed(region, values), strict=True):
            assert agree(result, values[node]), f"{node}: {region.workload}"


class LogSumExp(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(x, -1)


def test_a_sum_of_exponentials_is_one_region_with_the_guard_of_its_maximum() -> None:
    (graph,) = captured(LogSumExp(), (torch.randn(16, 1000),), TARGET)
    found = partition(graph, TARGET)
    assert len(found.regions) == 1
    assert not found.left


@pytest.mark.parametrize(
    "chosen",
    [lambda x: x[:, 2], lambda x: x[3], lambda x: x[1:, 0], lambda x: x.unbind(1)[1]],
)
def test_a_product_reads_views_as_they_are_where_it_has_faster_kernels_so(chosen) -> None:
    """A step of a sequence, say, whose rows lie apart."""

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(chosen(x) @ w)

    graph = traced(function, (torch.randn(20, 24, 48), torch.randn(48, 64))).graph
    (region,) = partition(graph, TARGET).regions
    assert not space_for(region.workload, TARGET).templates.keys() <= SLOW_FOR_TWO
    values = blocks.values_of(graph)
    (result,) = computed(region, values)
    assert agree(result, values[region.outputs[0]])
