"""Weights of frozen models are packed once, and give what they gave before."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch._inductor import config
from torch._inductor.utils import fresh_inductor_cache

from tilewright import Explanation, explain, workload
from tilewright.scheduler.torch import backend
from tilewright.spaces.workloads.packed_twin import packed_twin

ALWAYS = {"judge": "always", "db": None}


pytestmark = pytest.mark.usefixtures("frozen")


class Transposed(nn.Module):
    """A layer whose weight has the depth first, as in GPT-2."""

    def __init__(self, depth: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(depth, columns))
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ self.weight + self.bias)


class Tied(nn.Module):
    """Two products with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(20, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.layer(torch.tanh(self.layer(x)))
        return made


class Both(nn.Module):
    """A layer, and what is computed of it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(20, 37)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = self.layer(x)
        return total, torch.nn.functional.silu(total)


def found(model: nn.Module, *shape: int, options: dict[str, Any] = ALWAYS) -> Explanation:
    """Explain a compiled model that gives what it gives without this backend."""
    model, x = model.eval(), torch.randn(*shape)
    fast = torch.compile(model, backend=backend.tilewright, options=options)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-5)
    return explain(fast)


@pytest.mark.parametrize("rows", [(7,), (1,), (2, 9)])
@pytest.mark.parametrize("kind", [nn.Linear, Transposed])
@pytest.mark.parametrize(("depth", "columns"), [(20, 37), (24, 24)])
def test_the_weight_of_a_layer_is_packed(kind, depth, columns, rows):
    made = found(kind(depth, columns), *rows, depth)
    (region,) = made.graphs[0].regions
    assert region.by == "tilewright"
    assert "b=packed" in region.program
    assert region.packed_bytes == 4 * depth * -(-columns // 16) * 16
    assert "of packed weights beside the model's" in str(made)


@pytest.mark.parametrize("rows", [7, 33])
def test_the_weight_of_a_layer_that_is_read_beside_its_activation_is_packed(rows):
    (region,) = found(Both(), rows, 20).graphs[0].regions
    assert region.by == "tilewright"
    assert "-> t1, t2" in region.program
    assert region.packed_bytes == 4 * 20 * 48


def test_a_weight_that_is_read_twice_is_packed_once():
    regions = found(Tied(), 5, 20).graphs[0].regions
    assert sum(region.places for region in regions) == 2
    assert {region.packed_bytes for region in regions} == {4 * 20 * 32}


def test_the_faster_one_stays_whatever_that_is():
    (graph,) = found(nn.Linear(64, 48), 33, 64, options={"db": None}).graphs
    assert len(graph.regions) == 1


def test_a_model_of_equal_shapes_has_its_own_weights():
    with fresh_inductor_cache():
        found(nn.Linear(20, 37), 7, 20)
        torch._dynamo.reset()
        found(nn.Linear(20, 37), 7, 20)


def test_weights_that_may_change_are_read_as_they_are():
    layer = nn.Linear(20, 37)
    with config.patch(freezing=False):
        made = found(layer, 7, 20)
        assert "packed" not in str(made)
        with torch.no_grad():
            layer.weight.mul_(2)
        found(layer, 7, 20)


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("y[i, j] = relu(sum[k](x[i, k] * w[j, k]))", False),
        ("y[i, j] = relu(sum[k](x[i, k] * w[k, j]))", True),
        ("y[j] = sum[k](x[k] * w[k, j])", True),
        ("t[i, j] = sum[k](x[i, k] * w[k, j]); y[i, j] = tanh(t[i, j]); -> t, y", True),
        ("t[i, j] = sum[k](x[i, k] * w[j, k]); y[i] = sum[j](t[i, j]); -> t, y", None),
        ("y[i, j] = sum[k](w[i, k] * x[k, j])", None),
        ("y[i] = max[j](w[i, j])", None),
        ("y[b, i, j] = sum[k](x[b, i, k] * w[b, k, j])", None),
    ],
)
def test_the_packed_twin_of_a_product(text, turned):
    extents = {"i": 6, "j": 6, "k": 6, "b": 2}
    made = workload(text, **{axis: n for axis, n in extents.items() if f"{axis}" in text})
    twin = packed_twin(made, "w")
    assert (twin and twin[1]) == turned
    if twin:
        packed = (array for array in twin[0].written.operands if array.packed)
        assert [array.name for array in packed] == ["w"]


def test_a_frozen_convolution_ends_in_the_order_that_its_graph_gives():
    """Torch computes convolutions of frozen graphs with channels last, and copies the result."""
    model = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3))
    (graph,) = found(model, 2, 4, 7, 7).graphs
    assert sum(region.places for region in graph.regions) == 2
    assert not graph.left
