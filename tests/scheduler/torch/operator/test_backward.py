"""Backward by kernels of gradients, where these were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tilewright import gradient, tune
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.torch.kernels.functions import functions, key_of
from tilewright.scheduler.torch.operator.backward import Backward, backwards
from tilewright.spaces.language import program
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.served import workload_of

SOFTMAX = program("y[r, c] = softmax[c](x[r, c] * s)", r=8, c=24)
KEY = key_of(workload_of(SOFTMAX))
"""The key of a program that no other test calls."""


@pytest.fixture(params=[["y"], []], ids=["saved", "recomputed"])
def measured(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """A database in which the gradient of the softmax was measured, with what is saved."""
    database = tmp_path / "tuning.db"
    made = gradient(SOFTMAX, "x,s", saved=request.param)
    tune(made, f"cpu:threads={torch.get_num_threads()}", database, trials=2, seed=1)
    monkeypatch.setattr(functions, "database", str(database))
    return request.param


def called() -> tuple[list[torch.Tensor], torch.Tensor]:
    torch.manual_seed(0)
    x, s = torch.randn(8, 24, requires_grad=True), torch.randn((), requires_grad=True)
    return [x, s], torch.ops.tilewright.run([x, s], KEY)


def found(operands: list[torch.Tensor]) -> Backward:
    own = backwards.find(KEY, [each.detach() for each in operands], (True, True))
    assert own is not None
    return own


@pytest.mark.parametrize("is_faster", [True, False, None])
def test_gradients_are_those_of_torch(measured: list[str], is_faster: bool | None) -> None:
    operands, result = called()
    own = found(operands)
    assert list(own.saved) == measured
    own.is_faster = is_faster
    calls = []
    kernel = own.function

    def counted(*given: torch.Tensor) -> Any:
        calls.append(len(given))
        return kernel(*given)

    own.function = counted
    factor = torch.randn(24, 8).T  # its elements lie in another order than the result's
    result.backward(factor)
    again = [each.detach().clone().requires_grad_() for each in operands]
    torch.softmax(again[0] * again[1], 1).backward(factor)
    torch.testing.assert_close([o.grad for o in operands], [a.grad for a in again])
    assert bool(calls) == (is_faster is not False)


@pytest.mark.parametrize("faster", [["y"], []], ids=["saved", "recomputed"])
def test_what_is_saved_is_what_took_less_time(
    faster: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways are on record."""
    path = tmp_path / "tuning.db"
    target = detect_target("cpu", torch.get_num_threads())
    with Database(path) as database:
        for saved in (["y"], []):
            space = space_for(workload_of(gradient(SOFTMAX, "x,s", saved=saved)), target)
            schedule = space.schedule(space.sample(np.random.default_rng(0), 8)[0])
            seconds = 1e-6 if saved == faster else 2e-6
            measurement = Measurement(schedule, Status.OK, seconds)
            version = space.version_of(schedule)
            assert database.record(Record(space.workload, target, version, measurement))
    monkeypatch.setattr(functions, "database", str(path))
    operands = [torch.randn(8, 24), torch.randn(())]
    assert found(operands).saved == faster


def test_gradients_of_gradients_are_torchs(measured: list[str]) -> None:
    operands, result = called()
    found(operands).is_faster = True
    (first,) = torch.autograd.grad(result.square().sum(), operands[0], create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), operands[1])
    x, s = operands
    (first,) = torch.autograd.grad(torch.softmax(x * s, 1).square().sum(), x, create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(first.square().sum(), s)[0])


def test_what_nobody_measured_is_torchs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "database", str(tmp_path / "none.db"))
    operands = [torch.randn(8, 24), torch.randn(())]
    assert backwards.find(KEY, operands, (True, True)) is None


NETWORK = program(
    "h[b, t, d] = tanh(x[b, t, d] + sum[e](inside(h[b, t - 1, e], 0) * m[e, d]))",
    b=2,
    t=6,
    d=8,
    e=8,
)


def test_steps_of_a_network_go_back_by_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, key = tmp_path / "tuning.db", key_of(workload_of(NETWORK))
    names = [operand.name for operand in NETWORK.operands]
    target = f"cpu:threads={torch.get_num_threads()}"
    tune(gradient(NETWORK, names, saved="h"), target, database, trials=1, seed=1)
    monkeypatch.setattr(functions, "database", str(database))
    torch.manual_seed(0)
    given = {"x": torch.randn(2, 6, 8), "m": 0.3 * torch.randn(8, 8)}
    operands = [given[name].requires_grad_() for name in names]
    result = torch.ops.tilewright.run(operands, key)
    own = backwards.find(key, [each.detach() for each in operands], (True, True))
    assert own is not None
    assert [*own.saved] == ["h"]
    own.is_faster = True
    factor = torch.randn_like(result)
    result.backward(factor)
    again = {name: each.detach().clone().requires_grad_() for name, each in given.items()}
    h, steps = torch.zeros(2, 8), []
    for t in range(6):
        h = torch.tanh(again["x"][:, t] + h @ again["m"])
        steps.append(h)
    torch.stack(steps, 1).backward(factor)
    wanted = [again[name].grad for name in names]
    torch.testing.assert_close([each.grad for each in operands], wanted)
