"""The template of a GPU for chains over deep products: its space, its rules, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.cuda.chained_deep.template import ChainedDeep
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.testing.template import TemplateContract
from tilewright.spaces.workloads.workload import Workload

H200, A100 = cuda_target("sm_90a"), cuda_target("sm_80")
LOSS = (
    "l: int32[i](index < 128256)\nz[i,j] = sum[d](x[i,d] * w[j,d])\n"
    "y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]"
)
WEIGHED = "y[i,e] = sum[j](softmax[j](sum[d](x[i,d] * u[d,j])) * v[j,e])"
ROUTED = "y[i] = argmax[j](sum[d](x[i,d] * u[j,d]))"
USUAL = {
    "query_storage": "stages", "columns": 0, "row_fragments": 2, "keys": 128, "warps": 8,
    "warp_splits": 1,
    "depth_step": 64, "stages": 4, "blocks_per_sm": 1, "rescale": "late", "splits": 8,
    "merge": "last", "order": "rows",
}  # fmt: skip


def loss(rows: int, depth: int = 4096) -> Workload:
    """A linear layer with its cross-entropy."""
    return workload(LOSS, i=rows, j=128256, d=depth, dtype="bfloat16")


class TestChainedDeep(TemplateContract):
    template = ChainedDeep

    def served(self) -> list[tuple[Workload, Target]]:
        weighed = workload(WEIGHED, i=96, j=500, d=1009, e=72, dtype="float16")
        routed = workload(ROUTED, i=4096, j=61, d=4096, dtype="bfloat16")
        return [(loss(4096), H200), (loss(1), A100), (weighed, H200), (routed, A100)]

    def refused(self) -> list[tuple[Workload, Target]]:
        single = workload(ROUTED, i=64, j=64, d=4096)
        attention = workload("attention", b=1, h=1, i=8, j=8, d=128, dtype="float16")
        return [(attention, H200), (single, H200), (workload("matmul", m=8, n=8, k=8), H200)]


def space_of(w: Workload, target: Target = H200) -> Space:
    return Space(w, target, [ChainedDeep(w, target)])


@pytest.mark.parametrize(("target", "depth"), [(H200, 592), (A100, 432)])
def test_a_depth_that_tiles_have_room_for_needs_no_steps(target, depth):
    """That is rows for each tensor core and two stages of as many keys."""
    refused = ChainedDeep.refuses(loss(64, depth), target) or ""
    assert refused.startswith(f"{depth} terms of a score need no steps")
    assert ChainedDeep.refuses(loss(64, depth + 16), target) is None


def test_scores_lie_in_no_memory():
    """Of a chain of one kernel a workspace has parts of rows alone."""
    work = loss(4096)
    space = space_of(work)
    for row in space.sample(np.random.default_rng(0), 16):
        call = space.lower(space.schedule(row)).call
        assert call.workspace_bytes < 4096 * 128256 / 16


def quantities(w: Workload, **changes: object) -> dict[str, float]:
    template = ChainedDeep(w, H200)
    columns = {name: np.array([value]) for name, value in (USUAL | changes).items()}
    return {name: float(values[0]) for name, values in template.quantities(columns).items()}


def test_rows_that_come_again_are_counted():
    """As 256 rows to 128 keys; of 16 rows there are none where they stay."""
    few = {"warps": 1, "row_fragments": 1, "splits": 64}
    twice, stay = (quantities(loss(16), query_storage=q, **few) for q in ("stages", "shared"))
    assert twice["near_bytes"] == pytest.approx(stay["near_bytes"] * (1 + 16 / 128), rel=0.05)
    many = quantities(loss(4096))
    assert many["near_bytes"] == pytest.approx(1002 * 16 * (256 + 128) * 4096 * 2, rel=0.01)


def test_keys_come_from_main_memory_once_for_all_blocks_that_run_at_a_time():
    words = 128256 * 4096 * 2
    assert quantities(loss(4096))["main_bytes"] == pytest.approx(words, rel=0.1)
    assert quantities(loss(8192), splits=24)["main_bytes"] > 5 * words


def test_steps_of_the_depth_wait_for_memory_where_few_are_on_their_way():
    """16 rows on an H200 took 554 us with steps of 32 terms, one on its way, and 248 with 128 and
    four."""
    few = {"warps": 1, "row_fragments": 1, "warp_splits": 2, "splits": 128}
    slow = quantities(loss(16), **few, depth_step=32, stages=2)
    fast = quantities(loss(16), **few, depth_step=128, stages=5, keys=32, query_storage="shared")
    assert slow["instructions"] > 2 * fast["instructions"]


def test_matrices_come_within_the_steps_of_their_tile():
    work = workload(WEIGHED, i=96, j=500, d=1009, e=72, dtype="float16")
    space = space_of(work)
    schedules = [space.schedule(row) for row in space.sample(np.random.default_rng(0), 200)]
    assert all(s.values["stages"] <= -(-1009 // int(s.values["depth_step"])) for s in schedules)
    assert "matrices_in_time" not in {rule.name for rule in space_of(loss(64)).templates[
        "chained_deep"].rules}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rows", "depth", "templates"),
    [
        (ROUTED, 4096, 512, ["chained", "hopper_reduced"]),
        (ROUTED, 4096, 1024, ["chained", "chained_deep", "hopper_reduced"]),
        (ROUTED, 4096, 2048, ["chained", "chained_deep", "hopper_reduced", "staged"]),
        (ROUTED, 16, 2048, ["chained", "chained_deep", "hopper_reduced"]),
        (ROUTED, 4096, 4096, ["chained_deep", "hopper_reduced", "staged"]),
        (LOSS, 4096, 4096, ["chained_deep", "hopper_reduced", "staged"]),
    ],
)
def test_several_kernels_take_part_where_no_whole_depth_has_room(text, rows, depth, templates):
    """They multiply as products alone do; scores then lie in memory."""
    keys = 128256 if text == LOSS else 128
    work = workload(text, i=rows, j=keys, d=depth, dtype="bfloat16")
    assert list(space_for(work, H200).templates) == templates
