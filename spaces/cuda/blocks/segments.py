"""Rows in segments (grouped products): the rows that a block computes, and of which product.

A sorted table, known only at run time, gives the segment of each row. Each segment is cut into
tiles of ``H`` rows from its first row on. With ``start[e]`` the first row of segment ``e``, its
tiles have the numbers from ``start[e] / H + e`` on, rounded down: no two segments share a number,
none is above ``rows / H + segments``, and some numbers have no tile. So a block finds its segment
by its number alone: it is the last ``e`` whose first number is not above the block's, which holds
if row ``(number - e + 1) * H - 1`` is of segment ``e`` or a later one. Two more searches give the
segment's first row and the end of the tile; every warp does each for itself, 32 rows at a time, and
reads nothing outside of the table whatever that holds. Blocks without rows leave at once.
"""

from __future__ import annotations

from typing import Any

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.abi import open_count
from tilewright.spaces.cuda.blocks.batch import product_number
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.derivation.products.view import Gather, Segments

PRELUDE = """\
// The first number from low on for which `holds` does not; what comes after it does not count.
template <class Holds> TW_INLINE int tw_first_not(int low, int high, Holds holds) {
  while (low < high) {
    const int step = (high - low + 31) / 32;
    const int probe = low + ((int)threadIdx.x % 32 + 1) * step - 1;
    low += tw::count_lanes(probe < high && holds(probe)) * step;
    high = low + step - 1 < high ? low + step - 1 : high;
  }
  return low;
}
// An entry of a table of rows, the nearest one that there is.
TW_INLINE int tw_entry(const i32 *table, int row, int rows, int below) {
  const int entry = tw::load_global(table + (row < rows ? row : rows - 1));
  return entry < 0 ? 0 : entry < below ? entry : below - 1;
}
"""


def row_end(product: Tiled) -> str | None:
    """Return the C name of the row before which the rows of a block end: those of its segment, or
    of the call of an open kernel; None if it is known."""
    if segments_of(product):
        return "end_row"
    return open_count(product.rows_each) if product.is_open else None


def segments_of(product: Tiled) -> Segments | None:
    """Return the segments of a product's rows, if it has any."""
    return product.view.segments if isinstance(product, ImplicitProduct) else None


def reads_tables(product: Tiled) -> bool:
    """Return true if kernels call the functions of :data:`PRELUDE`."""
    return isinstance(product, ImplicitProduct) and bool(product.view.tables)


def entry_of(gather: Gather, table: str, row: Index) -> str:
    """Return C text of the entry that chooses a row; ``table`` is a pointer."""
    assert gather.table.drawn is not None
    return f"tw_entry({table}, {row.text}, {gather.table.size}, {gather.table.drawn.below})"


def number_of(product: Tiled, integer: str) -> Index:
    """Return the number of the block's product, of C type ``integer``."""
    segments = segments_of(product)
    if segments:
        return index(f"({integer})segment", segments.count)
    return product_number(product.batches, integer)


def row_tiles(product: Tiled, rows: Any) -> Any:
    """Return how many numbers of tiles of ``rows`` rows a launch has, whatever the table holds."""
    segments = segments_of(product)
    return product.rows // rows + segments.count if segments else ceil_div(product.rows, rows)


def drawn_row_tiles(product: Tiled, rows: Any) -> Any:
    """Return how many tiles have rows, if tables are as they are drawn at random."""
    segments = segments_of(product)
    return segments.tiles(rows) if segments else ceil_div(product.rows, rows)


def most_rows(product: Tiled) -> int:
    """Return the rows of a product, or of the longest segment in tables as they are drawn."""
    segments = segments_of(product)
    return int(segments.drawn.max()) if segments else product.rows


def segment_lines(segments: Segments, table: str, rows: int) -> list[str]:
    """Print the declarations of a tile's ``segment``, ``first_row`` and ``end_row``.

    The tile is ``tile_row``; its rows end before ``end_row``; a block without rows leaves.
    ``table`` is a pointer.
    """
    extent = segments.table.size
    entry = f"tw::load_global({table} + row)"
    return [
        f"const int after = tw_first_not(0, {segments.count}, [&](int e) {{",
        f"  const int row = (tile_row - e + 1) * {rows} - 1;",
        f"  return row >= 0 && (row >= {extent} || {entry} >= e);",
        "});",
        "const int segment = after > 0 ? after - 1 : 0;",
        f"const int start = tw_first_not(0, {extent}, [&](int row) {{",
        f"  return {entry} < segment;",
        "});",
        f"const int first_row = start % {rows} + (tile_row - segment) * {rows};",
        f"const int most = first_row + {rows} < {extent} ? first_row + {rows} : {extent};",
        "const int end_row = tw_first_not(first_row, most, [&](int row) {",
        f"  return {entry} <= segment;",
        "});",
        "if (end_row <= first_row) return;",
    ]
