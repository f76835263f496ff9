"""Scores are drawn apart, and once so far that exponentials overflow which are not shifted."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.program_sensitivity import sensitivity
from tilewright.measure.drawing.scores import scores_of
from tilewright.measure.drawing.shifts import shifts
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.operators import workload

WEIGHED = "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]){}) * v[j,e])"
SIZES = "i=40 j=70 d=24 e=8"
SCORED = {
    "softmax": "softmax r=8 c=100",
    "logsumexp": '"y[r] = logsumexp[c](x[r,c] * 0.001)" r=8 c=100',
    "loss": "cross_entropy r=16 c=100",
    "by hand": '"m[r] = max[c](x[r,c]); e[r,c] = exp(x[r,c] - m[r]); y[r] = 1 / sum[c](e[r,c])" '
    "r=9 c=50",
    "of products": '"y[r] = logsumexp[c](x[r,c] * x[r,c] * w[c])" r=9 c=64',
    "attention": "attention b=1 h=2 i=16 j=40 d=8 mask=causal",
    "scaled": f'"{WEIGHED.format(" * 0.01")}" {SIZES} dtype=bfloat16',
    "of whole numbers": '"k: int8[j,d]; ' + WEIGHED.format(" * s[j]") + f'" {SIZES}',
    "huge": '"y[r,c] = softmax[c](x[r,c] * 3e9)" r=6 c=64',
    "some hidden": '"where j < i - 4; ' + WEIGHED.format("") + f'" {SIZES}',
}


def deviation(program, inputs) -> float:
    scores = scores_of(program)
    return scores.deviation(lambda made, _: allowed(made, inputs)["tw.scores"], None)


@pytest.mark.parametrize("name", SCORED)
def test_scores_are_apart_and_once_far_apart(name):
    work = workload(SCORED[name])
    draw, how = one_draw(work, 3), sensitivity(work.program)
    assert 2 < deviation(work.program, draw.inputs) < 4
    far, *_ = shifts(work.program, how.spread, how.steep)
    assert 40 < deviation(work.program, {**draw.inputs, **far.applied(draw.inputs)}) < 90


@pytest.mark.parametrize(
    "text", ["layernorm r=4 c=9", "swiglu r=4 c=9", '"y[r] = sum[c](sigmoid(x[r,c]))" r=4 c=9']
)
def test_other_programs_have_none(text):
    assert scores_of(workload(text).program) is None
    assert sensitivity(workload(text).program).steep is None


def test_scores_that_no_operand_sets_far_apart_are_left_as_they_are():
    work = workload('"y[r,c] = softmax[c](5 * tanh(x[r,c]))" r=9 c=100')
    assert sensitivity(work.program).steep is None
    assert np.isfinite(one_draw(work, 0).allowed()["y"]).all()
