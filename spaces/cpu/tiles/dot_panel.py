"""The micro-kernel of a panel whose right operand is contiguous along the depth.

It computes dot products with all columns of the panel, a few at a time, so that nothing is packed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.tiles.dot_tile import DotTile
from tilewright.spaces.cpu.vectors.simd import C_TYPES

MOST_COLUMNS = 4
"""The most columns that meet a few rows at a time while these are in registers."""


def columns_at_once(rows: Any, chains: Any, registers: int) -> Any:
    """Compute the number of columns that a tile of ``rows`` rows can have in so many vector
    registers.

    Each result takes ``chains`` vectors of partial sums; the rows and one column take a vector
    each. Works element by element on arrays.
    """
    return np.clip((registers - rows - 1) // (rows * chains), 1, MOST_COLUMNS)


@dataclass(frozen=True)
class DotPanel:
    """A panel of ``columns``, cut into tiles such as ``tile``, which has the layouts of the
    panel."""

    name: str
    columns: int
    tile: DotTile

    @property
    def rows(self) -> int:
        """The number of rows of the panel."""
        return self.tile.rows

    @property
    def left_dtype(self) -> str:
        """The type of the left operand."""
        return self.tile.left_dtype

    @property
    def right_dtype(self) -> str:
        """The type of the right operand."""
        return self.tile.right_dtype

    def source(self) -> list[str]:
        """Return the C function ``name(a, b, s, depth, accumulate)``, after those of its tiles."""
        a, b = C_TYPES[self.left_dtype], C_TYPES[self.right_dtype]
        width = min(self.tile.columns, self.columns)
        rest = self.columns % width
        whole = repeat(self.columns // width) * spatial(width)
        calls = whole.emit(0, lambda at: [self._call(width, at[0])], prefix="j")
        if rest:
            calls.append(self._call(rest, index(self.columns - rest)))
        return [
            *(line for n in (width, rest) if n for line in self._dots(n).source()),
            f"static void {self.name}(",
            f"    const {a} *a, const {b} *b, float *s, long depth, int accumulate) {{",
            *(f"  {line}" for line in calls),
            "}",
        ]

    def _dots(self, columns: int) -> DotTile:
        return replace(self.tile, name=f"{self.name}_dots{columns}", columns=columns)

    def _call(self, columns: int, j: Index) -> str:
        """Return the call of the tile of so many columns that begins at column ``j``."""
        b, s = self.tile.right.emit(0, j), self.tile.sums.emit(0, j)
        return f"{self._dots(columns).name}(a, b + {b}, s + {s}, depth, accumulate);"
