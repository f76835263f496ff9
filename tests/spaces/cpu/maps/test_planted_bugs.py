"""Bugs planted in the C of maps are found."""

from __future__ import annotations

import dataclasses

import pytest

from tests.spaces.cpu.maps.checked_maps import machine, moving, named, tiled
from tests.spaces.cpu.native import check_bugs_are_found

# what is broken: pattern, replacement of its first occurrence in every kernel
BUGS = {
    "a border block is one column short": (r"columns - \(4 \* b0\)", "columns - 1 - (4 * b0)"),
    "a border block is one row short": (r"rows - \(4 \* b1\)", "rows - 1 - (4 * b1)"),
    "a block is swapped": (r"192 \* b1 \+ 4 \* b0", "192 * b0 + 4 * b1"),
    "a block overlaps the next": (r"192 \* b1", "144 * b1"),
    "batch for row": (r"x1 \+ a1", "x1 + a0"),
    "the first row for all": (r"const long a1 = row0 \+ r0", "const long a1 = row0"),
    "a step of another array": (r"67 \* a1 \+ a2\)", "67 * a1 + a2 + (a2 > 0))"),
    "a vector is passed over": (r"j \+= 4", "j += 8"),
    "one column too many": (r"left = end - j", "left = end - j + 1"),
    "no last columns": (r"if \(j < end\)", "if (0)"),
    "a tile is left out": (r"t2 < 5; t2", "t2 < 4; t2"),
}
# and of kernels that stream
STREAMED_BUGS = {
    "a tile ends before the next begins": (r"columns, 32 \+ .*\);", "columns, 32);"),
    "what tiles share is not turned": (r"a2, 32 \+ 16", "a2, 32"),
    "the last blocks are not turned": (r"b0_most : 12", "b0_most : 8"),
    "the first columns of a row are left out": (r"a2 \? skew : 0", "skew"),
    "the first tile begins at a line": (r"a2 \? skew : 0", "a2 ? 0 : skew"),
    "a column is passed over before a line": (r"j \+= left\)", "j += left + 1)"),
}


@pytest.mark.parametrize(("stream", "bugs"), [(False, BUGS), (True, STREAMED_BUGS)])
def test_every_planted_bug_is_found(stream, bugs, tmp_path):
    w = named("y[k, j, i] = x[k, i, j] + v[j]")
    target = machine(vector_bytes=16)
    target = dataclasses.replace(target, isa="generic", bf16_dot=False, flags=("-O0",))
    right = tiled(w, target, tile_rows=32, tile_columns=32, streaming_stores=stream)
    check_bugs_are_found(right, bugs, w, target, tmp_path)


# what is broken where the next tile is transposed meanwhile
AHEAD_BUGS = {
    "the last tile is not written": (r"tile \? at\[~tile & 1\] : 0, 0, 0", "0, 0, 0"),
    "both tiles begin where one does": (r"now = at\[tile & 1\]", "now = at[~tile & 1]"),
    "all tiles have one place": (r"turned \+ \(tile & 1\) \*", "turned + (tile & 0) *"),
    "the tile before begins where this one does": (r"tile \? at\[~tile & 1\]", "tile ? now"),
    "a tile's first column is that of the one before": (r"now\[2\] = [^;]*;", "now[2] = tile;"),
    "what is wider than most is not turned": (r"next && block < 96", "next && block < 64"),
    "every second block is left out": (
        r"block \* 32 < (.*); block\+\+",
        r"block * 32 < \1; block += 2",
    ),
    "a block overlaps the next": (r"192 \* \(block % 8\)", "144 * (block % 8)"),
}


@pytest.mark.parametrize("workers", [1, 3])
def test_every_bug_planted_where_tiles_are_turned_ahead_is_found(workers, tmp_path):
    w = named("y[k, j, i] = x[k, i, j] + v[j]")
    target = machine(vector_bytes=16, threads=workers, cores=workers)
    target = dataclasses.replace(target, isa="generic", bf16_dot=False, flags=("-O0",))
    sizes = {"tile_rows": 32, "tile_columns": 32, "workers": workers}
    right = tiled(w, target, **sizes, prefetch="turn", streaming_stores=True)
    check_bugs_are_found(right, AHEAD_BUGS, w, target, tmp_path)


# what is broken in a kernel that moves
MOVED_BUGS = {
    "blocks overlap": (r"768 \* b1", "672 * b1"),
    "a border block is one column short": (r"columns - \(8 \* b0\)", "columns - 1 - (8 * b0)"),
    "rows of the tile before": (r"row0 \+ r0", "row0 + 0"),
    "a vector too far": (r"j \+ 16 <= end; j \+= 16", "j + 16 <= end; j += 17"),
    "one too few of the last": (r"left = end - j", "left = end - j - 1"),
}


def test_every_bug_planted_where_elements_are_moved_is_found(tmp_path):
    w = moving("y[k, j, i] = x[k, i, j]", "float16", i=67, j=130, k=19)
    narrow = machine(vector_bytes=32, vector_registers=16)
    target = dataclasses.replace(narrow, isa="generic", flags=("-O0",))
    sizes = {"tile_rows": 32, "tile_columns": 64}
    right = tiled(
        w, target, **sizes, streaming_stores=False, register_transpose=False, strips=2, skew=0
    )
    check_bugs_are_found(right, MOVED_BUGS, w, target, tmp_path)


STRAIGHT_BUGS = {
    "a block is passed over": (r"\(columns \+ 7\) / 8", "columns / 8 - 1"),
    "strips are written twice": (r"i = \(\d+ \* b0\)", "i = 0"),
    "a step of the other array": (r", 328,", ", 64,"),
    "a strip is left out": (r"strip < strips", "strip < strips - 1"),
    "all strips are the first": (r"8 \* strip, j", "0 * strip, j"),
}
SKEWED_BUGS = {
    "a strip that is behind begins outside": (r" < 0 \? blocks : 0", " < -1 ? blocks : 0"),
    "the first block of a strip is passed over": (r" < 0 \? blocks : 0", " < 1 ? blocks - 1 : 0"),
    "a strip comes back too far": (r"\? blocks : 0", "? blocks - 1 : 0"),
}
TAIL_BUGS = {
    "the last columns are left out": (r"\(columns \+ 7\) / 8", "columns / 8"),
    "the last strip is left out": (r"b0\)\) \+ 7\) / 8", "b0)) + 0) / 8"),
    "the last strips are left out": (r"\(rows \+ (15|31)\) / ", "rows / "),
    "the last block begins early": (r"columns - 8\)", "columns - 9)"),
    "the last strip begins early": (r"rows - 8\)", "rows - 9)"),
}


@pytest.mark.parametrize(
    ("strips", "skew", "columns", "bugs"),
    [
        (2, 0, 64, STRAIGHT_BUGS),
        (2, 3, 64, STRAIGHT_BUGS | SKEWED_BUGS),
        (4, 3, 128, STRAIGHT_BUGS | SKEWED_BUGS),
        (2, 0, 60, TAIL_BUGS),
        (2, 3, 60, TAIL_BUGS),
        (4, 3, 124, TAIL_BUGS),
    ],
)
def test_every_bug_planted_in_blocks_that_go_straight_is_found(
    strips, skew, columns, bugs, tmp_path
):
    rows = 328 if columns % 64 == 0 else 332
    w = moving("y[k, j, i] = x[k, i, j]", "float32", i=columns, j=rows, k=3)
    target = dataclasses.replace(machine(vector_bytes=32), isa="generic", flags=("-O0",))
    sizes = {"tile_rows": 16 * strips, "tile_columns": 32 if strips == 2 else 128}
    values = {**sizes, "register_transpose": True, "strips": strips, "skew": skew}
    right = tiled(w, target, **values, streaming_stores=False, prefetch="nothing")
    check_bugs_are_found(right, bugs, w, target, tmp_path)
