"""One score above many equal ones: by how much, and where."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.drawing.balanced_scores import ABOVE
from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.edges import with_edges
from tilewright.spaces.language.evaluation import evaluate_stages
from tilewright.spaces.operators import workload

DECODES = {  # sum[d](q * k) of each, scaled
    "heads": ("attention b=2 h=4 kv=2 i=1 j=300 d=64 dtype=float16", 1 / 8),
    "no heads": (
        '"y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 0.2) * v[j,e])" i=3 j=100 d=16 e=8',
        0.2,
    ),
    "lengths": (
        '"n: int32[b](index < 81); where j < n[b]; y[b,e] = sum[j](softmax[j]('
        'sum[d](q[b,d] * k[b,j,d]) * 0.2) * v[b,j,e])" b=3 j=80 d=16 e=8',
        0.2,
    ),
}


@pytest.mark.parametrize("name", DECODES)
@pytest.mark.parametrize("end", ["first", "last"])
def test_the_greatest_of_a_draw_is_above_all_others_by_as_much(name: str, end: str) -> None:
    text, scale = DECODES[name]
    work = workload(text)
    title = f"all but the {end} in k equal"
    (edge,) = (edge for edge in with_edges(one_draw(work, 0)) if edge.name == title)
    key = np.moveaxis(edge.inputs["k"], -2, 0).astype(np.float64)
    (place,) = np.flatnonzero(key.reshape(len(key), -1).any(axis=1))
    products = next(s for s in work.program.stages if s.reducer == "sum" and "d" in s.over)
    scores = evaluate_stages(work.program, edge.inputs)[products.name] * scale
    assert scores.take(place, -1).max() == pytest.approx(ABOVE, rel=1e-2)
    lengths = edge.inputs.get("n", np.array([len(key)]))
    assert place == (0 if end == "first" else lengths.max() - 1)
