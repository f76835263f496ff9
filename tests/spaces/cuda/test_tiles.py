"""What tiled CUDA kernels are made of: the grid, copies, swizzles, fragments, exchanged sums."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.spaces.cuda.blocks.copies.gather_copy import copy_of
from tilewright.spaces.cuda.blocks.copies.tile_copy import source_of
from tilewright.spaces.cuda.blocks.partial_sums import WAYS, PartialSums
from tilewright.spaces.cuda.blocks.tile_grid import GROUPS, RASTERS, SPLITS, TileGrid
from tilewright.spaces.cuda.mma.fragments import Fragments, swizzled_tile
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.product import orient


@given(st.integers(1, 24), st.integers(1, 24), st.sampled_from(RASTERS), st.sampled_from(GROUPS))
@settings(max_examples=40, deadline=None)
def test_every_tile_has_one_block(rows, columns, raster, group):
    grid = TileGrid(rows, columns, 1, raster, group)
    found = [
        tile
        for block in range(grid.blocks[0])
        for tile in grid.mapping.tasks(block, extents=(rows, columns))
    ]
    assert Counter(found) == Counter((i, j) for i in range(rows) for j in range(columns))
    crossed, walked = (rows, columns) if raster == "along_columns" else (columns, rows)
    bands = -(-crossed // group)
    assert grid.blocks[0] <= rows * columns + (bands - 1) * walked


def test_blocks_cross_a_band_before_they_walk_along_it():
    along = TileGrid(8, 4, 1, "along_columns", 2).mapping
    assert [along.tasks(b)[0] for b in range(4)] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    across = TileGrid(8, 4, 1, "along_rows", 2).mapping
    assert [across.tasks(b)[0] for b in range(4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


@given(st.integers(1, 300), st.sampled_from(SPLITS))
@settings(deadline=None)
def test_parts_of_the_depth_make_up_the_whole(tiles, splits):
    share = TileGrid(1, 1, tiles, splits=splits).depth_share
    assert share * splits >= tiles > share * (splits - 1) - splits


TILES = [
    (slow, fast, size)
    for size in (1, 2, 4)
    for slow in (16, 96)
    for fast in (32 // size, 64 // size, 128 // size, 192 // size, 256 // size, 48)
    if fast * size % 16 == 0
]


@pytest.mark.parametrize(("slow", "fast", "size"), TILES)
def test_a_swizzled_tile_keeps_pieces_whole_and_meets_all_banks(slow, fast, size):
    tile, piece = swizzled_tile(slow, fast, size), 16 // size
    offsets = {(i, j): tile.offset(i, j) for i in range(slow) for j in range(fast)}
    assert sorted(offsets.values()) == list(range(slow * fast))
    for (i, j), offset in offsets.items():
        assert offset == offsets[i, j - j % piece] + j % piece
        assert j % piece or offset % piece == 0
    for first in range(0, slow, 8):  # eight rows of one ldmatrix: 16 bytes in each group of banks
        for j in range(0, fast, piece):
            groups = {offsets[i, j] * size // 16 % 8 for i in range(first, first + 8)}
            assert len(groups) == 8 or fast & -fast < 32 // size


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("deep", [True, False])
def test_lanes_name_the_matrices_in_the_order_of_the_registers(rank, deep):
    """Register 1 is 8 rows further for the left operand, 8 terms further for the right one."""
    shape = (32, 16) if deep else (16, 32)
    fragments = Fragments("a", rank, (1, 1), 2, swizzled_tile(*shape, 2), deep, 2)
    starts = []
    for matrix in range(4):
        rows = [fragments.mapping.tasks(8 * matrix + row)[0] for row in range(8)]
        along, depth = rows[0] if deep else (rows[0][0] * 8, rows[0][1])
        starts.append((along, depth * 8 if deep else depth))
        slow = [row[0 if deep else 1] for row in rows]
        assert slow == list(range(slow[0], slow[0] + 8))
    expected = [(0, 0), (8, 0), (0, 8), (8, 8)]
    assert starts == (expected if rank == 0 else [(b, a) for a, b in expected])


@given(
    st.sampled_from([1, 7, 16, 33, 64, 100]),
    st.sampled_from([1, 8, 17, 48, 128]),
    st.sampled_from([16, 32, 64, 96]),
    st.sampled_from([8, 16, 32, 64]),
    st.sampled_from([32, 64, 128, 256]),
    st.sampled_from(["float32", "float16", "int8", "float64"]),
    st.sampled_from(["row", "col"]),
)
@settings(max_examples=40, deadline=None)
def test_a_copy_moves_each_element_of_a_tile_once(m, k, width, depth, threads, dtype, order):
    product = orient(workload("matmul", m=m, n=64, k=k, dtype=dtype, a=order).matmul)
    source = source_of(product, product.left)
    assert source.strides[1] == 1
    tile = (width, depth) if product.left_runs_deep else (depth, width)
    size = product.left.element.bytes
    shared = swizzled_tile(*tile, size) if size < 8 else source
    copy = copy_of(product, product.left, "left", tile, threads, shared)
    vector = copy.vector
    assert vector * size <= 16
    assert source.shape[1] % vector == tile[1] % vector == 0
    moved = Counter(
        (i, j * vector + e)
        for thread in range(threads)
        for i, j in copy.mapping.tasks(thread, extents=(tile[0], tile[1] // vector))
        for e in range(vector)
    )
    assert moved == Counter((i, j) for i in range(tile[0]) for j in range(tile[1]))
    assert copy.registers == vector * len(copy.mapping.tasks(0))


@pytest.mark.parametrize("way", WAYS)
def test_only_as_much_workspace_is_zeroed_as_must_be(way):
    sums = PartialSums(TileGrid(3, 5, 8, splits=4), 64, 16, "float", way, "sums[i]")
    tickets, tile = 256, 64 * 16 * 4
    assert sums.workspace_bytes == tickets + 15 * tile * (4 if way == "store" else 1)
    assert sums.zeroed_bytes == (tickets if way == "store" else sums.workspace_bytes)
    alone = PartialSums(TileGrid(3, 5, 8), 64, 16, "float", way, "sums[i]")
    assert (alone.workspace_bytes, alone.zeroed_bytes, CUDA.written(alone.write)) == (0, 0, [])
