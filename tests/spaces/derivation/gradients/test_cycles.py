"""Gradients of stages that read themselves equal differences, and those of loops in torch."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spaces.cycle_programs import TEXTS, extents_of
from tests.spaces.derivation.gradients.differences import check, derivatives, seeds
from tests.spaces.random_cycles import EXTENTS, random_cycles
from tilewright.spaces.derivation.gradients.gradient import gradient
from tilewright.spaces.derivation.gradients.saving import forward
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.workloads.gradients import differentiable

STATES = {
    "tanh": ["h"],
    "matrix": ["h"],
    "gates": ["h", "c"],
    "selective": ["h"],
    "delta": ["S"],
    "gated delta": ["S"],
    "largest": ["h", "h_max"],
    "gated delta backwards": ["S"],
}


def made(name: str, **changes: int) -> Program:
    return program(TEXTS[name], dtype="float64", **extents_of(name, **changes))


def operands(found: Program) -> list[str]:
    return [operand.name for operand in found.operands]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_gradients_are_differences(name: str, steps: int) -> None:
    found = made(name, t=steps)
    check(found, operands(found))


@pytest.mark.parametrize("name", STATES)
def test_states_that_are_saved_are_not_computed_again(name: str) -> None:
    found = made(name)
    derived = check(found, operands(found), STATES[name])
    back = [cycle for cycle in cycles(derived) if not set(cycle.stages) & set(found.stage)]
    assert len(cycles(derived)) == len(back) == 1
    assert back[0].direction == -cycles(found)[0].direction


def test_steps_are_written_as_a_person_would_write_them() -> None:
    derived = gradient(made("tanh"), ["x", "w"], ["h"])
    assert [line for line in str(derived).splitlines() if " = " in line] == [
        "dh_2[b, t, d] = dh[b, t, d] + inside(dh_before[b, t + 1, d], 0)",
        "dh_before[b, t, d] = dh_2[b, t, d] * (1 - h[b, t, d] * h[b, t, d]) * w[d]",
        "dx[b, t, d] = dh_2[b, t, d] * (1 - h[b, t, d] * h[b, t, d])",
        "dw[d] = sum[b, t](dx[b, t, d] * inside(h[b, t - 1, d], 0))",
    ]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_gradients_of_random_cycles(seed: int) -> None:
    text = random_cycles(seed).text
    used = {a: min(n, 3) for a, n in EXTENTS.items() if re.search(rf"\b{a}\b", text)}
    found = program(text, dtype="float64", **used)
    check(found, differentiable(found))


@pytest.mark.parametrize("name", ["tanh", "matrix", "delta", "heat"])
def test_gradients_of_gradients(name: str) -> None:
    found = made(name, b=1, t=4, d=3, e=3)
    derived = gradient(found, operands(found))
    check(derived, operands(derived))


OTHERS = {
    "a state of which conditions alone depend": "h[t] = select(inside(h[t - 1], 0) > 0.2, x[t], "
    "y[t] * x[t])",
    "one of two outputs": "g[t] = y[t] * inside(g[t - 1], 0); h[t] = 0.5 * inside(h[t - 1], 1) + "
    "x[t] * g[t]; -> g, h",
    "a state read by what is no state": "h[t] = y[t] * inside(h[t - 1], 2) + x[t]; "
    "z[t] = x[t] * inside(h[t - 1], 2) + h[t]",
    "a maximum that is divided by what is beyond the last step": "s[t] = y[t] * y[t]; "
    "h[t, d] = max[e](x[d] + 0 * y[e] + inside(s[t - 1], -0.5))",
    "a sum over all steps": "h[t] = y[t] * inside(h[t - 1], 2) + x[t]; z = sum[t](h[t] * x[t])",
    "an operand one step before": "x: float64[5]; "
    "h[t] = y[t] * inside(h[t - 1], 2) + inside(x[t - 1], 1)",
    "a softmax of what is carried": "p[t, d] = softmax[d](inside(p[t - 1, d], 1) * y[t] + x[t, d])",
    "a step of a sum that is bounded": "h[t, d] = tanh(x[t, d] + sum[e: e <= d](inside(h[t - 1, "
    "e], 0) * y[e]))",
    "a maximum that is carried on": "m[t] = max(x[t], inside(m[t - 1], -inf)); s[t] = "
    "inside(s[t - 1], 0) * exp(max(inside(m[t - 1], -inf), -9) - m[t]) + exp(x[t] - m[t]); -> s",
}


@pytest.mark.parametrize("name", OTHERS)
def test_gradients_of_other_steps(name: str) -> None:
    used = {
        a: n
        for a, n in {"t": 5, "d": 3, "e": 3}.items()
        if f"{a}]" in OTHERS[name] or f"{a}," in OTHERS[name] or f"[{a}" in OTHERS[name]
    }
    found = program(OTHERS[name], dtype="float64", **used)
    check(found, operands(found))


def test_outputs_that_no_derivative_is_given_of_take_no_steps_back() -> None:
    text = "g[t] = inside(g[t - 1], 0) * x[t]; h[t] = inside(h[t - 1], 0) + x[t]; -> g, h"
    derived = gradient(program(text, t=5), ["x"], of=["h"])
    assert len(cycles(derived)) == 1
    assert operands(derived) == ["dh"]


def delta(given, state, t):
    error = given["v"][:, t] - (state * given["k"][:, t, None]).sum(-1)
    gate = torch.sigmoid(given["a"])[:, t, None, None] if "a" in given else 1.0
    if "a" in given:
        error = given["v"][:, t] - (gate * state * given["k"][:, t, None]).sum(-1)
    step = given["g"][:, t, None, None] * given["k"][:, t, None] * error[..., None]
    state = gate * state + step
    return state, (state * given["q"][:, t, None]).sum(-1)


def network(given, state, t):
    state = torch.tanh(given["x"][:, t] + state @ given["m"])
    return state, state


LOOPS = {
    "delta": (delta, (2, 5, 4)),
    "gated delta": (delta, (2, 5, 4)),
    "matrix": (network, (2, 5)),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("saved", [False, True])
def test_gradients_are_those_of_loops_in_torch(name: str, saved: bool) -> None:
    found, (step, shape) = made(name), LOOPS[name]
    results, inputs, _ = derivatives(found, operands(found), STATES[name] if saved else [])
    leaves = {n: torch.tensor(array, requires_grad=True) for n, array in inputs.items()}
    state, outputs = torch.zeros(shape, dtype=torch.float64), []
    for t in range(found.extent["t"]):
        state, output = step(leaves, state, t)
        outputs.append(output)
    (wanted,) = seeds(found).values()
    torch.stack(outputs, 1).backward(torch.tensor(wanted))
    for operand, array in results.items():
        np.testing.assert_allclose(array, leaves[operand].grad.numpy(), 1e-12, 1e-12)


def test_a_program_that_also_writes_states_computes_each_once() -> None:
    found = forward(made("delta"), ["S"])
    assert [stage.name for stage in found.stages] == ["u", "S", "o"]
