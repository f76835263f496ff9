"""The extents of workers' chunks, blocks and tiles of a thin product.

All functions work on integers and, element by element, on NumPy arrays of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.blocked.blocking import blocks_of
from tilewright.spaces.workloads.product import Product

THIN_ROWS = 16
"""The most rows of a thin product: they use the right operand too little to repay a copy of it."""
CHUNK_UNIT = 64
"""A worker's share of the depth is a multiple of this many terms: whole vectors and whole lines."""


@dataclass(frozen=True)
class ThinBlocking:
    """Extents in elements, the outermost first: a worker's chunk, the blocks in it, the tiles in
    them.

    Of a batch of products, a worker has a chunk of ``chunk_batches`` neighbouring ones.
    ``depth_chunks`` counts the workers along the depth that have anything to do.
    """

    batch_workers: Any
    column_workers: Any
    depth_workers: Any
    chunk_batches: Any
    chunk_columns: Any
    chunk_depth: Any
    depth_chunks: Any
    column_blocks: Any
    block_columns: Any
    block_depth: Any
    depth_blocks: Any
    tile_rows: Any
    tile_columns: Any

    @property
    def workers(self) -> Any:
        """The number of workers."""
        return self.batch_workers * self.column_workers * self.depth_workers


def thin_blocking(product: Product, tile_columns: Any, values: Mapping[str, Any]) -> ThinBlocking:
    """Compute the extents that the decisions ``values`` (integers or arrays) lead to."""
    column_workers, depth_workers = values["column_workers"], values.get("depth_workers", 1)
    column_tiles = ceil_div(ceil_div(product.columns, tile_columns), column_workers)
    column_blocks = blocks_of(column_tiles, values["block_columns"], tile_columns)
    chunk_depth = round_up(ceil_div(product.terms, depth_workers), CHUNK_UNIT)
    batch_workers = values.get("batch_workers", 1)
    return ThinBlocking(
        batch_workers=batch_workers,
        column_workers=column_workers,
        depth_workers=depth_workers,
        chunk_batches=ceil_div(product.batches, batch_workers),
        chunk_columns=column_tiles * tile_columns,
        chunk_depth=chunk_depth,
        depth_chunks=ceil_div(product.terms, chunk_depth),
        column_blocks=column_blocks,
        block_columns=ceil_div(column_tiles, column_blocks) * tile_columns,
        block_depth=values["block_depth"],
        depth_blocks=ceil_div(chunk_depth, values["block_depth"]),
        tile_rows=values["tile_rows"],
        tile_columns=tile_columns,
    )
