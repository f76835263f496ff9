"""How often terms of a sum have the same factor."""

from __future__ import annotations

import pytest

from tilewright.measure.drawing.draw import one_draw
from tilewright.spaces.derivation.algebra import factors
from tilewright.spaces.derivation.rounding.repeats import repeats
from tilewright.spaces.operators import workload

SIZES = {"i": 3, "k": 16, "d": 2}
TABLES = "t: int32[9](index < 5)\nu: int32[16](index < 9)\nw: float32[5,i]\n"
SUM = "y[i,d] = sum[k]({} * z[k,d])"


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (SUM.format("exp(x[i,k])"), 1),
        (SUM.format("exp(x[i,k // 4])"), 1),  # known of tables and axes alone
        ("y[i] = sum[k,d](exp(x[i,k]) * z[k,d])", 2),
        ("u: int32[16](index < 5)\nw: float32[5,i]\n" + SUM.format("exp(w[u[k],i])"), 1 + 15 / 5),
        (
            "u: int32[16](index < 5)\nw: float32[5,i]\np[i,k] = exp(w[u[k],i])\n"
            + SUM.format("p[i,k]"),
            1 + 15 / 5,
        ),
        ("u: int32[i](index < 5)\nw: float32[5,k]\n" + SUM.format("exp(w[u[i],k])"), 1),
        (TABLES + SUM.format("exp(w[t[u[k]],i])"), (1 + 15 / 9) * (1 + 8 / 5)),
        ("u: int32[16](sorted < 5)\nw: float32[5,i]\n" + SUM.format("exp(w[u[k],i])"), 16),
        ("e[k] = argmax[j](x[k,j])\nw: float32[4,i]\n" + SUM.format("exp(w[e[k],i])"), 16),
    ],
)
def test_terms_repeat_with_entries_of_tables_and_along_axes(text, most):
    sizes = SIZES | ({"j": 4} if "j" in text.split("=")[1] and "[j]" in text else {})
    made = workload(text, **sizes)
    stage = made.program.stages[-1]
    found = [repeats(made.program, stage, factor) for factor in factors(stage.body)]
    assert max(found) == pytest.approx(most)
    low, high = one_draw(made, 0).allowed()["y"]
    assert (low <= high).all()


def test_stages_that_are_read_twice_each_are_looked_at_once():
    """Forty of them, one after the other, would be looked at a million million times."""
    stages = [f"p{n}[i,k] = max[d](p{n - 1}[i,k] * z[k,d] + p{n - 1}[i,k])" for n in range(1, 41)]
    text = "\n".join([
        "u: int32[16](index < 5)\nw: float32[5,i]", "p0[i,k] = max[d](w[u[k],i] * z[k,d])", *stages,
        "y[i,d] = sum[k](exp(p40[i,k]) * z[k,d])",
    ])  # fmt: skip
    program = workload(text, **SIZES).program
    stage = program.stages[-1]
    found = [repeats(program, stage, factor) for factor in factors(stage.body)]
    assert max(found) == pytest.approx(1 + 15 / 5)
