"""Mistakes in stages that cancel show in one of the draws that who may win is checked on."""

from __future__ import annotations

import pytest

from tilewright.measure.drawing.cancelling import mistakes, undetected
from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.edges import with_edges
from tilewright.spaces.operators import workload

CANCEL = {
    "softmax": "softmax r=16 c=100",
    "two columns": "softmax r=64 c=2",
    "softmax of half": "softmax r=16 c=100 dtype=float16",
    "logsumexp": '"y[r] = logsumexp[c](x[r,c])" r=16 c=100',
    "loss": "cross_entropy r=16 c=100",
    "layernorm": "layernorm r=16 c=100",
    "variance": '"y[r] = var[c](x[r,c])" r=16 c=100',
    "variance of columns": '"y[c] = var[r](x[r,c])" r=100 c=16',
    "rmsnorm": "rmsnorm r=16 c=100",
    "attention": "attention b=1 h=2 i=20 j=40 d=16 mask=causal dtype=bfloat16",
    "one query": "attention b=2 h=2 i=1 j=40 d=16",
    "lengths": '"n: int32[b](index < 71); where j < n[b]; y[b,e] = sum[j](softmax[j]('
    'sum[d](q[b,d] * k[b,j,d]) * 0.2) * v[b,j,e])" b=6 j=70 d=16 e=16',
}


@pytest.mark.parametrize("name", CANCEL)
def test_mistakes_in_stages_that_cancel_show(name):
    work = workload(CANCEL[name])
    draw = one_draw(work, 0)
    planted = dict(mistakes(work.program))
    assert len(planted) >= 3
    draws = [draw, *with_edges(draw)]
    assert not undetected(work.program, iter(own.inputs for own in draws))


def test_a_softmax_shows_its_maximum_in_no_usual_draw():
    work = workload(CANCEL["softmax"])
    hidden = undetected(work.program, iter([one_draw(work, 0).inputs]))
    assert {"y_max is 0", "y_max is one element"} <= hidden.keys()
