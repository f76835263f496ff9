"""Whole numbers are exact in what kernels are held to, however large they are."""

import numpy as np
import pytest

from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate


@pytest.mark.parametrize(
    "condition",
    [
        "(i * 100000007 + j * 7919) // 1000003 % 2 == 0",
        "i * 16777217 + j <= 33554433",
        "16777217 * i < 16777216 * i + j",
        "max(i * 16777217, j) % 2 == 1",
        "abs(j - i * 16777217) < 16777220",
        "i + 9007199254740990 < 9007199254740992",
        "16777217 * i + j < z[i]",
    ],
)
def test_conditions_of_whole_numbers_leave_no_choice(condition) -> None:
    made = program(f"y[i,j] = select({condition}, x[i,j], -x[i,j])", i=5, j=7)
    inputs = {"x": np.arange(1, 36, dtype=np.float32).reshape(5, 7)}
    inputs |= {"z": np.float32(np.arange(5) * 16777217 + 4)} if "z" in made.operand else {}
    exact = evaluate(made, inputs)["y"]
    low, high = allowed(made, inputs)["y"]
    assert np.array_equal(low, exact)
    assert np.array_equal(high, exact)
    assert len(set(np.sign(exact).ravel())) == 2


def test_large_whole_numbers_in_a_sum_may_be_rounded_before_or_after() -> None:
    made = program("y[i] = (i * 16777217 + 1) * x[i] / (3 + 16777217 * i)", i=9)
    x = np.linspace(0.1, 1, 9, dtype=np.float32)
    i = np.arange(9)
    low, high = allowed(made, {"x": x})["y"]
    rounded = np.float32(i * 16777217 + 1) * x / np.float32(3 + 16777217 * i)
    wide = ((i * 16777217 + 1) * x.astype(float) / (3 + 16777217 * i)).astype(np.float32)
    for found in (rounded, wide):
        assert ((low <= found) & (found <= high)).all()
