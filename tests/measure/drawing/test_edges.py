"""Edge inputs: what there is of them for a program, and what is right of each."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.edges import edges, with_edges
from tilewright.measure.drawing.others import count, with_others
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload

WORKLOADS = [
    "softmax r=40 c=100",
    "layernorm r=40 c=100 dtype=float16",
    "cross_entropy r=40 c=100",
    "argmax shape=40x30 over=1 dtype=bfloat16",
    "embedding t=40 d=30 words=50",
    "attention b=1 h=2 i=20 j=40 d=8 mask=causal dtype=bfloat16",
    '"y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 0.25 + m[i,j]) * v[j,e])" '
    "i=30 j=40 d=8 e=8",
    '"n: int32[b](index < 71); where j < n[b]; y[b,e] = sum[j](softmax[j]('
    'sum[d](q[b,d] * k[b,j,d]) * 0.2) * v[b,j,e])" b=6 j=70 d=8 e=8',
    '"s[r] = max[c](z[r,c]); y[r] = sum[c](x[r,c] * s[r])" r=40 c=64',
    '"y[r] = sum[c](select(x[r,c] > 0.5, 1, x[r,c] * z[r,c]))" r=40 c=64',
    "max_pool2d n=2 c=8 h=10 w=10 r=3 stride=2 padding=1",
]


@pytest.mark.parametrize("text", WORKLOADS)
def test_what_is_right_of_an_edge_is_what_float64_makes_of_it(text):
    work = workload(text)
    draw = one_draw(work, 0)
    seen = set()
    for edge in with_edges(draw):
        seen.add(edge.name)
        exact = evaluate(work.program, edge.inputs)
        for output in work.outputs:
            low, high = edge.allowed()[output.name]
            with np.errstate(all="ignore"):
                found = output.element.cast(exact[output.name])
            assert agrees(found, low, high).all()
            anything = (low == -np.inf) & (high == np.inf)
            assert np.mean(anything) < 0.9, edge.name
    assert len(seen) >= 1
    assert len(edges(work.program)) <= count(work.program)
    assert {other.name for other in with_others(draw)} >= seen


def test_the_same_edges_come_of_the_same_draw():
    work = workload(WORKLOADS[0])
    one, other = (list(with_edges(one_draw(work, 5))) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        assert a.name == b.name
        assert np.array_equal(a.inputs["x"], b.inputs["x"], equal_nan=True)
