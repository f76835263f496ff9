"""The loop over tiles of keys does what every tile needs, and nothing that few tiles do."""

from __future__ import annotations

import pytest

from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule

VALUES = {
    "warpgroups": 2, "blocks_per_sm": 1, "splits": 1, "merge": "last", "keys": 128, "overlap": 0,
    "chain_overlap": 0, "query_storage": "registers", "tile_scheduler": "grid", "query_buffers": 1,
    "stages": 2, "ping_pong": 0, "rescale": "late", "head_group": 2, "skip_per_warpgroup": 0,
}  # fmt: skip


def parts(mask: str, **changed: object) -> list[str]:
    """What comes before the loop over tiles of keys, in it, and behind it."""
    shape = {"b": 1, "h": 2, "i": 512, "j": 512, "d": 128, "dtype": "bfloat16"}
    work = workload("attention", mask=mask, **shape)
    template = ChainedHopper(work, cuda_target("sm_90a"))
    body = template.lower(Schedule(template.name, tuple((VALUES | changed).items()))).source.body
    before, rest = body.split("for (j--; ")
    inside, behind = rest.split("more = 1;")
    return [before, inside, behind]


@pytest.mark.parametrize("overlap", [0, 1])
def test_values_that_no_row_sees_are_hidden_before_and_behind_the_loop(overlap):
    hidden = ["store_shared<4>" in part for part in parts("causal", overlap=overlap)]
    assert hidden == [True, False, False]
    hidden = ["store_shared<4>" in part for part in parts("none", overlap=overlap)]
    assert hidden == [False, False, False]


def test_a_tile_knows_whether_scores_are_far_from_zero_before_rows_catch_up():
    inside = parts("none")[1]
    assert inside.index("wide |= ") < inside.index("if (!moved)") < inside.index("if (__builtin")
    assert "if (__builtin_expect(shifted, 0))" in inside
