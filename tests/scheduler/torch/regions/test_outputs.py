"""Regions of several outputs: found, computed, and put in the place of their nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx, nn

from tests.scheduler.torch import blocks
from tests.scheduler.torch.translated import agree, computed
from tilewright import explain
from tilewright.scheduler.torch import backend
from tilewright.scheduler.torch.extraction.capture import captured, captured_parts
from tilewright.scheduler.torch.regions.partition import Partition, partition
from tilewright.scheduler.torch.translation.nodes import name_of
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target, detect_target

TARGET = detect_target("cpu")


class Residual(nn.Module):
    """A residual that later layers read as well, and its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(48)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + y
        return self.norm(total), total.view(-1)


class Crossed(nn.Module):
    """Two norms, each with a residual that the other one reads."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        one, other = x + y, x * y
        first = nn.functional.layer_norm(one, (48,)) + other * 2
        second = nn.functional.layer_norm(other, (48,)) + one * 3
        return first, second


class Around(nn.Module):
    """A norm that is added to what torch computes of its input."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + y
        return nn.functional.layer_norm(total, (48,)) + total.sort(-1)[0], total


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(6, 48), torch.randn(6, 48)


def check(graph: fx.Graph, target: Target = TARGET) -> Partition:
    """Assert that all outputs of regions have the values that torch computes in float64."""
    found, values = partition(graph, target), blocks.values_of(graph)
    for region in found.regions:
        for node, result in zip(region.outputs, computed(region, values), strict=True):
            assert agree(result, values[node]), f"{node}: {region.workload}"
    return found


def test_a_residual_and_its_norm_are_one_region() -> None:
    (graph,) = captured(Residual().eval(), inputs(), TARGET)
    found = check(graph)
    assert [len(region.outputs) for region in found.regions] == [2]
    assert found.left == {}


@pytest.mark.parametrize(
    ("module", "shape", "forward"),
    [
        (nn.LayerNorm(48), (6, 48), 3),
        (nn.RMSNorm(48), (6, 48), 2),
        (nn.BatchNorm1d(48), (6, 48), 3),
        (nn.BatchNorm2d(8, momentum=0.3), (3, 8, 5, 7), 5),
        (nn.BatchNorm2d(8, affine=False, track_running_stats=False), (3, 8, 5, 7), 3),
        (nn.GroupNorm(2, 8), (3, 8, 5, 7), 3),
    ],
)
def test_norms_in_training_are_one_region_with_their_statistics(
    module: nn.Module, shape: tuple[int, ...], forward: int
) -> None:
    """What the backward graph reads, and the running statistics, are outputs as well."""
    x = torch.randn(shape, requires_grad=True)
    parts = captured_parts(module, (x,), TARGET, training=True)
    found = [check(part.graph) for part in parts]
    assert [len(region.outputs) for region in found[0].regions] == [forward]
    reductions = {"var_mean", "mean", "sum"}
    assert not reductions & {name_of(node) for each in found for node in each.left}
    assert {name_of(node) for node in found[0].left} <= {"add"}  # the number of batches


def compiled(model: Callable[..., Any]) -> Any:
    options = {"judge": "always", "db": None}
    return torch.compile(model, backend=backend.tilewright, options=options)


@pytest.mark.parametrize(
    ("model", "outputs"), [(Residual(), [2]), (Crossed(), [2, 1]), (Around(), [1])]
)
def test_a_region_that_would_wait_for_its_own_output_has_fewer(
    model: nn.Module, outputs: list[int]
) -> None:
    (graph,) = captured(model.eval(), inputs(), TARGET)
    assert [len(region.outputs) for region in check(graph).regions] == outputs


def test_kernels_of_several_outputs_stand_where_all_can_be_computed() -> None:
    """What reads the first output stands before the last one in the graph."""
    given, model = inputs(), Crossed().eval()
    torch._dynamo.reset()
    fast = compiled(model)
    with torch.no_grad():
        torch.testing.assert_close(fast(*given), model(*given), rtol=1e-5, atol=1e-5)
    (report,) = explain(fast).graphs
    assert sum(r.places for r in report.regions if r.by == "tilewright") == 2


def test_batch_norm_trains_as_torch_does() -> None:
    """Gradients and running statistics are torch's."""
    torch.manual_seed(0)
    x, results = torch.randn(3, 8, 5, 7), []
    for make in (compiled, lambda model: model):
        torch._dynamo.reset()
        norm = nn.BatchNorm2d(8)
        run = make(nn.Sequential(norm, nn.ReLU()))
        given = x.clone().requires_grad_()
        run(given).square().sum().backward()
        results.append([given.grad, norm.weight.grad, norm.running_mean, norm.running_var])
        if make is compiled:
            assert [graph.by for graph in explain(run).graphs] == ["tilewright"] * 2
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("activation", "rows"), [(nn.GELU(), 7), (nn.SiLU(), 7), (nn.GELU("tanh"), 7), (nn.GELU(), 1)]
)
def test_the_sum_before_an_activation_is_written_beside_its_value(
    activation: nn.Module, rows: int
) -> None:
    """The backward graph reads the sum. Axes of batches are one axis of rows in both."""
    model = nn.Sequential(nn.Linear(24, 40), activation, nn.Linear(40, 24))
    forward, backward = captured_parts(model, (torch.randn(3, rows, 24),), TARGET, training=True)
    found = check(forward.graph)
    assert [len(region.outputs) for region in found.regions] == [2, 1]
    assert found.left == {}
    check(backward.graph)


@pytest.mark.parametrize("rows", [1, 7])
def test_a_gpu_has_kernels_of_a_sum_and_its_activation(rows: int) -> None:
    target = cuda_target("sm_90a")
    model = nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.Linear(40, 24))
    forward, _ = captured_parts(model, (torch.randn(3, rows, 24),), target, training=True)
    found = check(forward.graph, target)
    assert [len(region.outputs) for region in found.regions] == [2, 1]
    served = space_for(found.regions[0].workload, target).templates.keys()
    assert served >= {"simt", "thin"} if rows == 1 else {"simt"}


def test_a_sum_and_what_is_cheap_to_compute_of_it_are_no_region_of_two_outputs() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(48, 48)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            total = self.layer(x)
            return total.view(-1), total + y

    (graph,) = captured(Twice().eval(), (torch.randn(18, 48), torch.randn(18, 48)), TARGET)
    assert [len(region.outputs) for region in check(graph).regions] == [1]


def test_a_product_and_its_activation_train_as_in_float64() -> None:
    torch.manual_seed(0)
    model, x = blocks.Mlp(), torch.randn(2, 9, 48)
    gradients = []
    for run, dtype in ((compiled, torch.float32), (lambda model: model, torch.float64)):
        torch._dynamo.reset()
        model = model.to(dtype)
        model.zero_grad()
        given, call = x.clone().to(dtype).requires_grad_(), run(model)
        call(given).square().sum().backward()
        gradients.append([given.grad, *(each.grad.clone() for each in model.parameters())])
        if run is compiled:
            forward, backward = explain(call).graphs
    wanted = gradients.pop()
    torch.testing.assert_close(gradients[0], wanted, check_dtype=False, rtol=1e-4, atol=1e-4)
    assert sum(r.by == "tilewright" and "-> t1, t2" in r.program for r in forward.regions) == 1
    assert backward.by == "tilewright"


def test_modules_are_captured_where_torch_has_given_up_compiling_them() -> None:
    """After too many compilations torch runs such frames as they are."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(recompile_limit=1):
        for size in (3, 4, 5):
            torch.compile(nn.LayerNorm(size), backend="eager", dynamic=False)(torch.ones(2, size))
    assert len(captured(nn.LayerNorm(48), (torch.ones(6, 48),), TARGET)) == 1
