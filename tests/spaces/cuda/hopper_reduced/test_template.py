"""Hopper's template of reduced products: what it serves, its decisions, and what it may take."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.spaces.cuda.hopper_reduced.template import HopperReduced
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract

H200 = detect_target("cuda:sm_90a")
LOSS = (
    '"l: int32[i](index < {j}); z[i,j] = sum[d](x[i,d] * w[j,d]); '
    'y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]" i={i} j={j} d={d} dtype=bfloat16'
)
LARGE = LOSS.format(i=4096, j=128256, d=4096)
SERVED = (
    LARGE,
    LOSS.format(i=16384, j=50257, d=768),
    '"y[i] = argmax[j](sum[d](x[i,d] * u[j,d]))" i=300 j=64 d=2048 dtype=float16',
    '"z[b,i,j] = sum[d](x[b,i,d] * u[d,j]); y[b,i] = logsumexp[j](z[b,i,j])" '
    "b=2 i=70 j=96 d=64 dtype=bfloat16",
)
REFUSED = {
    "matmul m=64 n=64 k=64 dtype=bfloat16": "it is a product of matrices",
    "softmax r=8 c=8": "needs one axis, its last",
    LOSS.format(i=64, j=96, d=60): "120 bytes apart",
    LARGE.replace("bfloat16", "float32"): "is float32; allowed: float16 or bfloat16",
    "attention b=2 h=4 i=200 j=200 d=64 dtype=bfloat16": "1 matrices are weighed",
    '"where j <= i; z[i,j] = sum[d](x[i,d] * u[j,d]); y[i] = logsumexp[j](z[i,j])" '
    "i=64 j=64 d=64 dtype=bfloat16": "needs rows that see all",
    '"z[b,i,j] = sum[d](x[b,i,d] * u[b,j,d]); y[b,i] = max[j](z[b,i,j])" '
    "b=2 i=64 j=64 d=64 dtype=bfloat16": "2 products; allowed: 1",
}


class TestHopperReduced(TemplateContract):
    template = HopperReduced

    def served(self):
        return [(workload(text), H200) for text in SERVED]

    def refused(self):
        others = [(workload(LARGE), detect_target(name)) for name in ("cpu", "cuda:sm_80")]
        return [*others, *((workload(text), H200) for text in REFUSED)]


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_why_it_is_refused(text, reason):
    assert reason in str(HopperReduced.why_not(workload(text), H200))


def test_no_array_of_scores_is_anywhere():
    """They would take 2.1 GB; parts take 16 bytes for each row of each tile."""
    work = workload(LARGE)
    space = Space(work, H200, [HopperReduced(work, H200)])
    for row in space.sample(np.random.default_rng(0), 64):
        schedule = space.schedule(row)
        call = space.lower(schedule).call
        tiles = -(-128256 // schedule.values["block_n"])
        assert call.workspace_bytes - call.workspace_zeroed == 16 * 4096 * tiles
        assert len(call.launches) == 2


def test_what_is_finished_is_a_part_of_each_row_of_a_tile_not_each_score():
    work = workload(LARGE)
    space = Space(work, H200, [HopperReduced(work, H200)])
    rows = space.sample(np.random.default_rng(0), 64)
    wide = np.array([space.schedule(row).values["block_n"] for row in rows])
    assert (space.quantities(rows)["epilogue_elements"] == 4096 * np.ceil(128256 / wide)).all()


def test_a_tile_of_all_columns_writes_the_outputs():
    work = workload(SERVED[2])
    space = Space(work, H200, [HopperReduced(work, H200)])
    launches = {
        space.schedule(row).values["block_n"]: space.lower(space.schedule(row)).call
        for row in space.sample(np.random.default_rng(0), 64)
    }
    assert {64, 32} <= launches.keys()
    for columns, call in launches.items():
        assert (len(call.launches), call.workspace_bytes > 0) == ((2, True), (1, False))[
            columns == 64
        ]


def test_the_estimate_prefers_it_to_a_product_that_is_written():
    space = space_for(workload(LARGE), H200)
    population = space.sample(np.random.default_rng(0), 2000)
    latency = AnalyticModel().latency(space, population)
    names = np.array([space.schedule(row).template for row in population])
    best = {name: latency[names == name].min() for name in set(names)}
    assert min(best, key=best.__getitem__) == "hopper_reduced"
    assert best["hopper_reduced"] > LARGE_SECONDS


LARGE_SECONDS = 2 * 4096 * 128256 * 4096 / 990e12
"""What tensor cores need at least."""
