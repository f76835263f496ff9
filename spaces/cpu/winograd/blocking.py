"""The extents of workers' chunks, blocks and register tiles, of squares of outputs and of columns.

A block of squares is transformed, multiplied and transformed back before the next one; the filters
of a block of columns are transformed once. All functions work on integers and, element by element,
on NumPy arrays of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.blocked.blocking import blocks_of
from tilewright.spaces.cpu.winograd.view import SquareWindows


@dataclass(frozen=True)
class Blocking:
    """Extents of ``squares`` and columns, the outermost first: a worker's chunk, the blocks in it,
    the tiles in them. ``reads`` is the number of elements that a square reads along each axis."""

    reads: Any
    squares: Any
    row_workers: Any
    column_workers: Any
    chunk_squares: Any
    chunk_columns: Any
    square_blocks: Any
    column_blocks: Any
    block_squares: Any
    block_columns: Any
    tile_rows: Any
    tile_columns: Any

    @property
    def workers(self) -> Any:
        """The number of workers."""
        return self.row_workers * self.column_workers


def blocking(view: SquareWindows, lanes: int, values: Mapping[str, Any]) -> Blocking:
    """Compute the extents that the decisions ``values`` (integers or arrays) lead to, for vectors
    of ``lanes`` floats."""
    outputs = values["output_tile"]
    tile_rows, tile_columns = values["tile_rows"], values["tile_vectors"] * lanes
    squares = squares_of(view, outputs)
    row_tiles = ceil_div(ceil_div(squares, tile_rows), values["row_workers"])
    column_tiles = ceil_div(ceil_div(view.column.extent, tile_columns), values["column_workers"])
    square_blocks = blocks_of(row_tiles, values["block_tiles"], tile_rows)
    column_blocks = blocks_of(column_tiles, values["block_columns"], tile_columns)
    return Blocking(
        reads=outputs + view.taps - 1,
        squares=squares,
        row_workers=values["row_workers"],
        column_workers=values["column_workers"],
        chunk_squares=row_tiles * tile_rows,
        chunk_columns=column_tiles * tile_columns,
        square_blocks=square_blocks,
        column_blocks=column_blocks,
        block_squares=ceil_div(row_tiles, square_blocks) * tile_rows,
        block_columns=ceil_div(column_tiles, column_blocks) * tile_columns,
        tile_rows=tile_rows,
        tile_columns=tile_columns,
    )


def squares_of(view: SquareWindows, outputs: Any) -> Any:
    """Compute the number of squares of ``outputs`` outputs along each axis, element by element."""
    if not isinstance(outputs, np.ndarray):
        return view.square_count(int(outputs))
    known, where = np.unique(outputs, return_inverse=True)
    return np.array([view.square_count(int(n)) for n in known])[where.reshape(outputs.shape)]
