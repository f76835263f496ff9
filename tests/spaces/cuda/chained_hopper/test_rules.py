"""What rules of chained kernels on Hopper say of parts that a cluster merges."""

from __future__ import annotations

import pytest

from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space

H200 = cuda_target("sm_90a")
DECODE = workload("attention", b=16, h=128, kv=1, i=1, j=4096, d=128, dtype="bfloat16")
SPACE = Space(DECODE, H200, [ChainedHopper(DECODE, H200)])
CLUSTER: dict[str, Value] = {
    "warpgroups": 2, "blocks_per_sm": 1, "splits": 8, "merge": "cluster", "keys": 64, "overlap": 1,
    "chain_overlap": 0, "query_storage": "shared", "tile_scheduler": "grid", "query_buffers": 1,
    "stages": 3,
    "ping_pong": 0, "rescale": "late", "head_group": 1, "skip_per_warpgroup": 0,
}  # fmt: skip


def chosen(**changes: Value) -> Schedule:
    return Schedule("chained_hopper", tuple((CLUSTER | changes).items()))


def test_blocks_of_a_cluster_share_a_tile_and_no_memory():
    call = SPACE.lower(chosen()).call
    (launch,) = call.launches
    assert (launch.grid, launch.cluster) == ((128, 1, 1), (8, 1, 1))
    assert call.workspace_bytes == 0


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"splits": 16}, "16 blocks are no cluster; allowed: 2, 4 or 8"),
        ({"splits": 1}, "one part needs no merging by a cluster; allowed: merge=last"),
        (
            {"warpgroups": 1, "splits": 8, "tile_scheduler": "persistent"},
            "its blocks are no persistent",
        ),
        (
            {"keys": 32, "stages": 3},
            "parts of 81920 bytes come to where stages of 49152 bytes were",
        ),
    ],
)
def test_what_a_cluster_cannot_merge_is_refused_in_words(changes, why):
    assert why in (SPACE.why_not(chosen(**changes)) or "")
