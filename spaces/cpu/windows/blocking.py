"""The extents of workers' chunks, blocks and register tiles of a product of placed operands.

As in ``spaces.cpu.blocked.blocking``, decisions bound what a block may hold, and the blocks are
then as equal as whole tiles allow. A tile never crosses from one line of rows to the next, and a
block of the depth holds whole turns of the depth's outermost loop. All functions work on integers
and, element by element, on NumPy arrays of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.blocked.blocking import blocks_of
from tilewright.spaces.cpu.windows.nest import Windows


@dataclass(frozen=True)
class Blocking:
    """Extents in elements, unless their names say otherwise, from the outermost to the innermost.

    ``products`` counts the independent products. ``rows`` are the rows of one line, ``columns`` the
    columns of one product. ``row_tiles`` counts the tiles of all lines of a product; a worker has
    ``chunk_tiles`` neighbouring ones. The depth's outermost loop has ``turns`` turns of
    ``terms_a_turn`` terms each, and a block has ``block_turns`` of them.
    """

    products: Any
    rows: Any
    columns: Any
    turns: Any
    terms_a_turn: Any
    batch_workers: Any
    row_workers: Any
    column_workers: Any
    chunk_products: Any
    line_tiles: Any
    row_tiles: Any
    chunk_tiles: Any
    chunk_columns: Any
    column_blocks: Any
    block_columns: Any
    block_turns: Any
    depth_blocks: Any
    tile_rows: Any
    tile_columns: Any

    @property
    def workers(self) -> Any:
        """The number of workers."""
        return self.batch_workers * self.row_workers * self.column_workers

    @property
    def block_terms(self) -> Any:
        """The terms of a full block of the depth."""
        return self.block_turns * self.terms_a_turn


def blocking(view: Windows, lanes: int, values: Mapping[str, Any]) -> Blocking:
    """Compute the extents that the decisions ``values`` (integers or arrays) lead to, for vectors
    of ``lanes`` floats."""
    packed, placed = view.nest(True), view.nest(False)

    def of(of_packed: int, of_placed: int) -> Any:
        if isinstance(values["pack_right"], np.ndarray):
            return np.where(values["pack_right"], of_packed, of_placed)
        return of_packed if values["pack_right"] else of_placed

    products = of(packed.product_count, placed.product_count)
    columns = of(packed.column.extent, placed.column.extent)
    turns = of(packed.depth[0].extent, placed.depth[0].extent)
    terms_a_turn = of(packed.terms_a_turn, placed.terms_a_turn)
    tile_rows, tile_columns = values["tile_rows"], values["tile_vectors"] * lanes
    line_tiles = ceil_div(packed.row.extent, tile_rows)
    row_tiles = packed.line_count * line_tiles
    column_tiles = ceil_div(ceil_div(columns, tile_columns), values["column_workers"])
    column_blocks = blocks_of(column_tiles, values["block_columns"], tile_columns)
    block_turns = ceil_div(turns, blocks_of(turns, values["block_depth"], terms_a_turn))
    return Blocking(
        products=products,
        rows=packed.row.extent,
        columns=columns,
        turns=turns,
        terms_a_turn=terms_a_turn,
        batch_workers=values["batch_workers"],
        row_workers=values["row_workers"],
        column_workers=values["column_workers"],
        chunk_products=ceil_div(products, values["batch_workers"]),
        line_tiles=line_tiles,
        row_tiles=row_tiles,
        chunk_tiles=ceil_div(row_tiles, values["row_workers"]),
        chunk_columns=column_tiles * tile_columns,
        column_blocks=column_blocks,
        block_columns=ceil_div(column_tiles, column_blocks) * tile_columns,
        block_turns=block_turns,
        depth_blocks=ceil_div(turns, block_turns),
        tile_rows=tile_rows,
        tile_columns=tile_columns,
    )
