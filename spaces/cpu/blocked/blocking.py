"""The extents of workers' chunks, cache blocks and register tiles of a matrix product.

Decisions bound what a block may hold; the blocks are then as equal as whole tiles allow, so that no
size of the input leaves a sliver. All functions work on integers and, element by element, on NumPy
arrays of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.workloads.product import Product


@dataclass(frozen=True)
class Blocking:
    """Extents in elements, the outermost first: a worker's chunk, the blocks in it, the tiles in
    them.

    Of a batch of products, a worker has a chunk of ``chunk_batches`` neighbouring ones.
    ``row_blocks``, ``column_blocks`` and ``depth_blocks`` count the blocks of a full chunk.
    """

    batch_workers: Any
    row_workers: Any
    column_workers: Any
    chunk_batches: Any
    chunk_rows: Any
    chunk_columns: Any
    row_blocks: Any
    column_blocks: Any
    depth_blocks: Any
    block_rows: Any
    block_columns: Any
    block_depth: Any
    tile_rows: Any
    tile_columns: Any

    @property
    def workers(self) -> Any:
        """The number of workers."""
        return self.batch_workers * self.row_workers * self.column_workers


def blocking(product: Product, lanes: int, values: Mapping[str, Any]) -> Blocking:
    """Compute the extents that the decisions ``values`` (integers or arrays) lead to, for vectors
    of ``lanes`` floats."""
    tile_rows, tile_columns = values["tile_rows"], values["tile_vectors"] * lanes
    row_workers, column_workers = values["row_workers"], values["column_workers"]
    batch_workers = values.get("batch_workers", 1)
    row_tiles = ceil_div(ceil_div(product.rows, tile_rows), row_workers)
    column_tiles = ceil_div(ceil_div(product.columns, tile_columns), column_workers)
    row_blocks = blocks_of(row_tiles, values["block_rows"], tile_rows)
    column_blocks = blocks_of(column_tiles, values["block_columns"], tile_columns)
    block_depth = round_up(
        ceil_div(product.terms, ceil_div(product.terms, values["block_depth"])), DEPTH_UNIT
    )
    return Blocking(
        batch_workers=batch_workers,
        row_workers=row_workers,
        column_workers=column_workers,
        chunk_batches=ceil_div(product.batches, batch_workers),
        chunk_rows=row_tiles * tile_rows,
        chunk_columns=column_tiles * tile_columns,
        row_blocks=row_blocks,
        column_blocks=column_blocks,
        depth_blocks=ceil_div(product.terms, block_depth),
        block_rows=ceil_div(row_tiles, row_blocks) * tile_rows,
        block_columns=ceil_div(column_tiles, column_blocks) * tile_columns,
        block_depth=block_depth,
        tile_rows=tile_rows,
        tile_columns=tile_columns,
    )


DEPTH_UNIT = 32
"""Blocks hold a multiple of this many terms: whole vectors, and whole turns of unrolled loops."""


def blocks_of(tiles: Any, most: Any, tile: Any) -> Any:
    """Compute the least number of blocks of at most ``most`` elements, or one tile, that hold
    ``tiles`` tiles of ``tile`` elements."""
    per_block = most // tile
    return ceil_div(tiles, per_block + (per_block == 0))
