"""Grouped products on Hopper: what of their tiles is loaded and multiplied."""

from __future__ import annotations

import pytest

from tests.measure.cuda.kernels.hopper.hopper_problems import USUAL
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space

HOPPER = cuda_target("sm_90a")
GROUPED = {"t": 512, "n": 14336, "k": 4096, "experts": 8, "b": "col", "dtype": "bfloat16"}
TRIMMED = {**USUAL, "swap_ab": True, "block_m": 128, "block_n": 128, "tail_rows": 16}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"swap_ab": False}, "swapped, rows are there"),
        ({"tail_rows": 64, "block_n": 96}, "no whole 2 or more parts of 64"),
        ({"tail_rows": 64, "block_n": 64}, "no whole 2 or more parts of 64"),
    ],
)
def test_tiles_of_segments_are_trimmed_along_n_to_a_few_parts(changes, words):
    work = workload("grouped_matmul", **GROUPED)
    space = Space(work, HOPPER, [Hopper(work, HOPPER)])
    assert words in str(space.why_not(_named(space, {**TRIMMED, **changes})))


def test_trimmed_tiles_load_and_multiply_what_segments_fill():
    """Segments as they are drawn fill 128 rows in part: by 16 rows they are counted anew."""
    work = workload("grouped_matmul", **GROUPED)
    space = Space(work, HOPPER, [Hopper(work, HOPPER)])
    both = [_named(space, {**TRIMMED, "tail_rows": part}) for part in (0, 16)]
    assert [space.why_not(schedule) for schedule in both] == [None, None]
    whole, trimmed = (space.quantities(space.rows([schedule])) for schedule in both)
    segments = space.templates["hopper"].product.view.segments
    rows = 16 * segments.tiles(16), 128 * segments.tiles(128)
    assert trimmed["flops"][0] == 2 * rows[0] * 14336 * 4096
    assert whole["flops"][0] == 2 * rows[1] * 14336 * 4096
    near = (128 + 128 * rows[0] / rows[1]) / 256
    assert trimmed["near_bytes"][0] == pytest.approx(near * whole["near_bytes"][0])


def _named(space: Space, values: dict[str, Value]) -> Schedule:
    decisions = space.templates["hopper"].decisions
    return Schedule("hopper", tuple((d.name, values.get(d.name, d.values[0])) for d in decisions))
