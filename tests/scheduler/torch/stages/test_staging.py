"""Graphs as stages give what they give without, and stay as they are where stages do not help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tilewright import explain
from tilewright.scheduler.torch import backend
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.stages import costs, measuring

PLAIN = {"untuned": "skip", "db": None, "stages": "measure"}
A, B, X = torch.randn(12, 16), torch.randn(12, 16), torch.randn(16, 12)


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch._dynamo.reset()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Each stage takes as long as any other, so that few stages are best, and they win."""
    timed: list[float] = []

    def seconds_of(call: Callable[[], None], on_gpu: bool) -> float:
        call()
        timed.append(1.0)
        return 1.0

    monkeypatch.setattr(measuring, "seconds_of", seconds_of)
    monkeypatch.setattr(judging, "in_turns", lambda *_: judging.Times(1.0, 2.0))
    return timed


def compiled(model: Callable[..., Any], options: dict[str, Any] = PLAIN) -> Any:
    return torch.compile(model, backend=backend.tilewright, options=options)


def branches(x: torch.Tensor) -> torch.Tensor:
    return (x @ A) @ (x @ B)


def stages(fast: Any) -> str:
    return explain(fast).graphs[-1].stages


@pytest.mark.parametrize("judge", ["measure", "always"])
def test_branches_run_side_by_side(side_by_side: list[float], judge: str) -> None:
    """Torch's products, or kernels for one thread where the graph as a whole has two."""
    options = PLAIN if judge == "measure" else {**PLAIN, "untuned": "predict", "judge": judge}
    fast = compiled(branches, options)
    with torch.inference_mode():
        torch.testing.assert_close(fast(X), branches(X), rtol=1e-4, atol=1e-4)
        again = X + 1
        torch.testing.assert_close(fast(again), branches(again), rtol=1e-4, atol=1e-4)
    name = "mm" if judge == "measure" else "run"
    assert (
        stages(fast)
        == f"1 with groups side by side, 2.00 times as fast as without: {name} | {name}"
    )
    assert f"stages: {stages(fast)}" in str(explain(fast))
    assert torch.get_num_threads() == 2


def test_outputs_lie_as_they_do_without(side_by_side: list[float]) -> None:
    """Those in the middle of the graph as well, and with nothing in the place of a tensor."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            one, other = self.a(x), self.b(x)
            return one.transpose(1, 2), x, other, torch.cat([one, other], 1)

    model, x = Model().eval(), torch.randn(1, 8, 4, 4)
    fast = compiled(model)
    with torch.no_grad():
        found, wanted = fast(x), model(x)
    torch.testing.assert_close(found, wanted)
    assert [t.stride() for t in found] == [t.stride() for t in wanted]
    assert "side by side" in stages(fast)


def test_a_stage_is_measured_once(side_by_side: list[float], tmp_path) -> None:
    """The database knows it in the next compilation, in whichever order its groups are."""
    options = {**PLAIN, "db": tmp_path / "known.db"}
    with torch.no_grad():
        compiled(branches, options)(X)
        assert len(side_by_side) == 2  # one product, of whichever branch, and both
        torch._dynamo.reset()
        fast = compiled(lambda x: (x @ B) @ (x @ A), options)
        torch.testing.assert_close(fast(X), (X @ B) @ (X @ A), rtol=1e-4, atol=1e-4)
    assert len(side_by_side) == 2
    assert "side by side" in stages(fast)


@pytest.mark.parametrize(
    ("place", "name", "value", "words"),
    [
        (measuring, "seconds_of", lambda call, _: 1.0, "none: they are 1.01 times as fast"),
        (costs, "described", lambda *_: 1 / 0, "none: ZeroDivisionError: division by zero"),
        (judging, "alike", lambda *_: False, "none: their result differs"),
    ],
)
def test_what_does_not_help_leaves_the_graph_as_it_is(
    monkeypatch: pytest.MonkeyPatch, side_by_side: list[float], place, name, value, words
) -> None:
    monkeypatch.setattr(judging, "in_turns", lambda *_: judging.Times(1.0, 1.01))
    monkeypatch.setattr(place, name, value)
    fast = compiled(branches)
    with torch.no_grad():
        torch.testing.assert_close(fast(X), branches(X), rtol=1e-4, atol=1e-4)
    assert stages(fast).startswith(words)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x @ A @ B.t(), "none: it has no branches"),
        (lambda x: (x @ A) @ (x.add_(1) @ B), "none: "),
    ],
)
def test_some_graphs_have_no_stages(function, words: str) -> None:
    fast, x = compiled(function), X.clone()
    with torch.no_grad():
        torch.testing.assert_close(fast(x), function(X.clone()), rtol=1e-4, atol=1e-4)
    assert stages(fast).startswith(words)


def test_one_thread_is_not_shared() -> None:
    torch.set_num_threads(1)
    fast = compiled(branches)
    with torch.no_grad():
        fast(X)
    assert stages(fast) == "none: torch has one thread"


def test_graphs_of_training_have_no_stages(side_by_side: list[float]) -> None:
    fast, x = compiled(lambda x: (x @ A) @ (x @ B)), X.clone().requires_grad_()
    fast(x).sum().backward()
    assert {graph.stages for graph in explain(fast).graphs} == {""}
    assert side_by_side == []
