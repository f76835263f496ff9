"""Lanes that begin where lines of memory do."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tilewright.spaces.cuda.maps.sizes import has_lines, splits_sectors
from tilewright.spaces.cuda.maps.template import CudaMap
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

TARGET = cuda_target("sm_90a")
TILE = {"vector": 1, "tile_rows": 64, "tile_columns": 128, "threads": 256, "order": "columns"}


def plane_of(text, **parameters):
    return CudaMap(workload(text, **parameters), TARGET).plane


def test_only_rows_that_begin_within_a_sector_know_lines():
    assert not has_lines(plane_of("y[j, i] = x[i, j]", i=64, j=72))
    assert not has_lines(plane_of("y[i, j] = x[i, j] + b[j]", i=63, j=65))  # nothing turns
    plane = plane_of("y[j, i] = x[i, j]", i=64, j=65)
    assert splits_sectors(plane, plane.transposed[0])
    assert not splits_sectors(plane, plane.view.outputs[0])
    assert has_lines(plane_of("y[j, i] = x[i, j + 1]", i=64, j=64))
    assert has_lines(plane_of("y[j, i] = x[i, j]", i=64, j=72, dtype="bfloat16"))


def compiled(path: Path, text: str, row: str, start: str) -> Callable[[int, int, int], int]:
    """The C of a place, of a batch ``a0``, a row and where its tile begins."""
    code = f"int place(int a0, int {row}, int {start}) {{ return {text}; }}"
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", str(path)]
    subprocess.run(command, input=code, text=True, check=True, timeout=60)
    return ctypes.CDLL(str(path)).place


@pytest.mark.parametrize(("dtype", "line"), [("float32", 32), ("bfloat16", 64)])
def test_the_first_lane_of_each_row_is_at_the_first_line_of_its_tile(dtype, line, tmp_path):
    w = workload("y[b, j, i] = x[b, i, j]", b=3, i=333, j=201, dtype=dtype)
    space = Space(w, TARGET, [CudaMap(w, TARGET)])
    values = {**TILE, "stores": "cached", "lanes": "line"}
    source = space.lower(Schedule("map", tuple(values.items()))).source.text
    read, again, written = re.findall(r"ahead = (.*);", source)
    assert read == again
    for text, start, row, leading, rows in (
        (read, "row0", "a2", 201, 333),
        (written, "column0", "a1", 333, 201),
    ):
        place = compiled(tmp_path / f"{row}.so", text, row, start)
        for batch, at, first in product(range(3), range(0, rows, 7), (0, 64, 128)):
            ahead = place(batch, at, first)
            assert 0 <= ahead < line
            assert ((batch * rows + at) * leading + first + ahead) % line == 0


def test_quantities_count_sectors_that_two_warps_ask_for():
    """By hand: a run of 32 floats at any place lies in 28 bytes more of whole sectors than it has,
    a tile's row of 64, or of 128, in as many."""
    w = workload("y[j, i] = x[i, j]", i=8191, j=8209)
    space = Space(w, TARGET, [CudaMap(w, TARGET)])
    schedules = [
        Schedule("map", tuple({**TILE, "stores": "cached", "lanes": lanes}.items()))
        for lanes in ("tile", "line")
    ]
    tile, line = space.quantities(space.rows(schedules))["near_bytes"]
    half = w.least_bytes / 2
    assert tile == pytest.approx(half * 2 * (1 + 28 / 128))
    assert line == pytest.approx(half * (2 + 28 / 256 + 28 / 512))
