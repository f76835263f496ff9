"""Register tiles of the products in chained and pairwise kernels, and the loop that calls them.

Rows of all factors lie in memory one behind the other, a stride apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.algebra.layout import strided
from tilewright.spaces.cpu.tiles.kernel_parts import tile_extents
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.kernels.text import C


def tile(
    name: str,
    lanes: int,
    shape: tuple[int, int, int],
    left: tuple[int, int],
    right: int,
    sums: int,
    right_dtype: str = "float32",
    right_is_padded: bool = True,
) -> RegisterTile:
    """Return the register tile of a ``shape`` (rows, columns, terms).

    The left factor has its steps along rows and terms, the right one and the sums the stride of
    their rows.
    """
    rows, columns, terms = shape
    whole = round_up(columns, lanes)
    return RegisterTile(
        name=name,
        rows=rows,
        columns=columns,
        lanes=lanes,
        unroll=2,
        prefetch=0,
        left=strided((rows, terms), left),
        right=strided((terms, columns), (right, 1)),
        sums=strided((rows, whole), (sums, 1)),
        right_dtype=right_dtype,
        right_is_padded=right_is_padded,
        fetches_sums=False,
        keeps_right=True,
    )


def tiles_of(
    width: int, columns: int, tile_of: Callable[[int], RegisterTile]
) -> list[RegisterTile]:
    """Return the tiles along a ``width``, each once: full ones, and perhaps a narrower last one."""
    return [tile_of(extent) for extent in tile_extents(width, columns)]


def sums(
    tiles: Sequence[RegisterTile], width: int, row: str, end: str, arguments: str
) -> list[str]:
    """Return the loops over the rows ``row`` before ``end``, and over the columns ``e`` of a
    ``width``, in which ``tiles`` are called with the same ``arguments``."""
    lines, first = list[str](), 0
    for each in tiles:
        last = width if each is tiles[-1] else width // each.columns * each.columns
        call = f"{each.name}({arguments});"
        lines += C.loop("e", last, call, first=first, step=each.columns)
        first = last
    return C.loop(row, end, lines, step=tiles[0].rows)
