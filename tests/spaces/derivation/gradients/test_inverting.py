"""Gradients that solve for an operand in what is computed of it, and what cannot be solved for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.derivation.gradients.differences import check, derivatives, seeds, wide
from tilewright.spaces.derivation.gradients.gradient import gradient
from tilewright.spaces.derivation.gradients.saving import forward
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.named import operator

NORM = operator("layernorm", r=4, c=6)
SOLVED: dict[str, tuple[Program, str, str, str]] = {
    "layernorm": (NORM, "x,weight,bias", "y,rstd", "x"),
    "layernorm and its mean": (NORM, "x,weight,bias", "y,mean,rstd", "x"),
    "rmsnorm": (operator("rmsnorm", r=4, c=6), "x,weight", "y,y_sum", "x"),
    "rmsnorm and its root": (operator("rmsnorm", r=4, c=6), "x,weight", "y,y_sum_rsqrt", "x"),
    "log_softmax": (operator("log_softmax", r=4, c=6), "x", "y,lse", "x"),
    "one of a product": (operator("swiglu", r=3, c=4), "gate,up", "y", "up"),
    "all operations": (
        program("y[i, j] = b[j] - -(w[j] / (3 + x[i, j] * s[i]) - 4) / s[i]", i=3, j=4),
        "x,w,s,b",
        "y",
        "x",
    ),
    "dimensions in another order": (
        program("y[i, j] = x[j, i] * w[i] + 1; z[i] = sum[j](y[i, j] * x[j, i])", i=3, j=4),
        "x,w",
        "y",
        "x",
    ),
}


@pytest.mark.parametrize("name", SOLVED)
def test_what_is_solved_for_is_not_read(name: str) -> None:
    made, wrt, saved, solved = SOLVED[name]
    found = check(made, wrt.split(","), saved.split(","), solved=[solved])
    assert solved not in found.operand
    assert solved in gradient(made, wrt.split(",")).operand


def test_one_division_for_a_chain_of_products() -> None:
    """Two divisions become one by a product."""
    made = gradient(NORM, ["x"], ["y", "rstd"], solved=["x"])
    assert "(y[r, c] - bias[c]) / (weight[c] * rstd[r])" in str(made)


PLANTED = {
    "the bias is not subtracted": ("y[r, c] - bias[c]", "y[r, c] + bias[c]"),
    "the weight of another column": ("(weight[c] * rstd", "(weight[5 - c] * rstd"),
    "statistics of another row": ("* rstd[r]))", "* rstd[3 - r]))"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_found(name: str) -> None:
    right, wrong = PLANTED[name]
    found, inputs, made = derivatives(NORM, ["x", "weight"], ["y", "rstd"], solved=["x"])
    assert right in str(made)
    planted = program(str(made).replace(right, wrong))
    states = evaluate(forward(NORM, ["y", "rstd"]), inputs)
    results = evaluate(planted, _known(planted, inputs | states))
    assert not all(np.allclose(found[n], results[f"d{n}"], rtol=1e-6) for n in found)


def test_saved_values_of_another_call_are_found() -> None:
    found, inputs, made = derivatives(NORM, ["x", "weight"], ["y", "rstd"], solved=["x"])
    for stale in ("y", "rstd"):
        states = evaluate(forward(NORM, ["y", "rstd"]), inputs)
        states[stale] = evaluate(forward(NORM, ["y", "rstd"]), wide(NORM, seed=5))[stale]
        results = evaluate(made, _known(made, inputs | states))
        assert not np.allclose(found["x"], results["dx"], rtol=1e-6), stale


def test_a_weight_of_zero_gives_no_number() -> None:
    """Nothing of ``x`` is left in ``y``, and no number stands for it."""
    _, inputs, made = derivatives(NORM, ["x", "weight"], ["y", "rstd"], solved=["x"])
    inputs = inputs | {"weight": inputs["weight"] * (np.arange(6) != 2)}
    states = evaluate(forward(NORM, ["y", "rstd"]), inputs)
    with np.errstate(all="ignore"):
        results = evaluate(made, _known(made, inputs | states))
    assert np.isnan(results["dweight"]).tolist() == [False, False, True, False, False, False]


def _known(made: Program, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    given = {f"d{name}": value for name, value in seeds(NORM).items()}
    return {name: (arrays | given)[name] for name in made.operand}


@pytest.mark.parametrize(
    ("made", "saved", "solved", "message"),
    [
        (
            NORM,
            ["y", "rstd"],
            ["z"],
            "solved 'z' is no operand of the program; operands: x, weight,",
        ),
        (NORM, [], ["x"], "x cannot be solved for: nothing is saved"),
        (NORM, ["rstd"], ["x"], "x cannot be solved for: rstd lacks it"),
        (NORM, ["rstd_sum"], ["x"], "x cannot be solved for: rstd_sum reduces it"),
        (NORM, ["y"], ["x"], "x cannot be solved for: mean_sum reads it; allowed: saved stages"),
        (NORM, ["y"], ["weight"], "weight cannot be solved for: y has not one element for each of"),
        (
            program("y[i] = tanh(x[i]) * x[0]", i=4),
            ["y"],
            ["x"],
            "x cannot be solved for: y reads it 2 times",
        ),
        (
            program("y[i] = exp(x[i]) * 2; z[i] = y[i] * x[i]", i=4),
            ["y"],
            ["x"],
            "x cannot be solved for: y computes exp(x[i]); allowed: + - * /",
        ),
        (
            program("y[i] = x[i // 2] * 2; z[i] = y[i] * x[i // 2]", i=4),
            ["y"],
            ["x"],
            "x cannot be solved for: y has not one element for each of x",
        ),
    ],
)
def test_what_cannot_be_solved_for(
    made: Program, saved: list[str], solved: list[str], message: str
) -> None:
    with pytest.raises(InputError) as refusal:
        gradient(made, ["x"], saved, solved=solved)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
