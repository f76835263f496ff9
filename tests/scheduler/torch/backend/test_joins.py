"""Products of one left factor are one where weights are constants, and give what they gave."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._inductor import config

from tests.scheduler.torch import blocks
from tilewright import explain
from tilewright.scheduler.torch import backend
from tilewright.scheduler.torch.backend.explanation import GraphReport
from tilewright.scheduler.torch.kernels.building import wait_for_builds
from tilewright.scheduler.turns import GAIN

pytestmark = pytest.mark.usefixtures("frozen")


MODELS = [
    (lambda: blocks.Separate(32, (True, True, True)), (32, 32, 32)),
    (lambda: blocks.Separate(40, (True, False, True)), (40, 40, 40)),
    (lambda: blocks.Gated(24, 40), (40, 40, 3)),
]


def joined(model: nn.Module, shape: tuple[int, ...], judge: str) -> GraphReport:
    """Report on a compiled model that gives what it gives in float64."""
    model, x = model.eval(), torch.randn(*shape)
    fast = torch.compile(model, backend=backend.tilewright, options={"judge": judge, "db": None})
    with torch.no_grad():
        made, wanted = fast(x), model.double()(x.double())
    torch.testing.assert_close(made, wanted, check_dtype=False, rtol=1e-5, atol=1e-5)
    (graph,) = explain(fast).graphs
    return graph


@pytest.mark.parametrize(("make", "columns"), MODELS)
@pytest.mark.parametrize("rows", [(2, 5), (1, 1)])
def test_products_of_one_factor_are_joined(make, columns, rows):
    width = next(make().parameters()).shape[1]
    graph = joined(make(), (*rows, width), "always")
    (join,) = graph.joins
    assert (join.rows, join.depth, join.columns) == (rows[0] * rows[1], width, columns)
    assert join.taken
    assert sum(f"n={sum(columns)} " in region.program for region in graph.regions) == 1


def test_products_stay_apart_unless_one_is_faster():
    graph = joined(blocks.Gated(24, 40), (5, 24), "measure")
    (join,) = graph.joins
    assert join.gain is not None
    assert join.taken == (join.gain >= GAIN)


@pytest.mark.slow  # as test_backend.py does with one product
def test_products_stay_apart_until_kernels_are_built_in_the_background(tmp_path):
    """The next compilation lets both ways compete."""
    model, x = blocks.Gated(26, 42).eval(), torch.randn(5, 26)
    options = {"build": "background", "db": tmp_path / "known.db"}
    found = []
    for _ in range(2):
        torch._dynamo.reset()
        fast = torch.compile(model, backend=backend.tilewright, options=options)
        with torch.no_grad():
            torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-5)
        wait_for_builds()
        found += explain(fast).graphs[-1].joins
    first, second = found
    assert first.later
    assert not first.taken
    assert "until the kernels are built" in str(first)
    assert second.gain is not None
    assert not second.later


def test_joined_products_are_switched_to_if_that_is_asked_for():
    model, x = blocks.Gated(26, 44).eval(), torch.randn(5, 26)
    options = {"build": "background", "judge": "always", "db": None}
    fast = torch.compile(model, backend=backend.tilewright, options=options)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-5)
            wait_for_builds()
    (graph,) = explain(fast).graphs
    assert graph.joins[0].taken
    assert "built meanwhile" in {region.why for region in graph.regions}


def test_weights_that_may_change_stay_apart():
    model = blocks.Gated(24, 40).eval()
    fast = torch.compile(model, backend=backend.tilewright, options={"judge": "always", "db": None})
    with config.patch(freezing=False), torch.no_grad():
        fast(torch.randn(3, 24))
    assert not explain(fast).graphs[0].joins
