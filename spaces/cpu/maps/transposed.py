"""The blocks that a tile of a map reads transposed, and the scratch memory that they go to.

They are transposed before the tile's rows are written, or while the rows of the tile before are:
then a core waits for reads and for streaming stores at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.maps.names import Names
from tilewright.spaces.derivation.maps.view import Access


@dataclass(frozen=True)
class TransposedBlocks:
    """The transposed blocks of a tile, for the kernel called ``entry``."""

    names: Names
    entry: str

    @property
    def _side(self) -> int:
        return self.names.registers.side

    @property
    def _counts(self) -> tuple[int, int]:
        """The most blocks along the columns and the rows of a tile."""
        most, rows = self.names.lines.most, self.names.tiling.tile_rows
        return ceil_div(most, self._side), int(ceil_div(rows, self._side))

    @property
    def _usual(self) -> int:
        """The number of blocks of a full tile without a line to share."""
        return int(ceil_div(self.names.tiling.tile_columns, self._side)) * self._counts[1]

    # -- before the tile's rows --------------------------------------------------------------

    def at_once(self) -> list[str]:
        """Return the C that transposes all blocks of the tile at hand."""
        return [line for access in self.names.plane.transposed for line in self._all_of(access)]

    def _all_of(self, access: Access) -> list[str]:
        blocks = repeat(*self._counts) * spatial(self._side, self._side)

        def transpose(start: Sequence[Index]) -> list[str]:
            return [self._transpose(access, start)]

        steps = blocks.emit(0, transpose, extents=("columns", "rows"), prefix="b")
        return ["{", *indented([*self._ends(access), *steps]), "}"]

    def _ends(self, access: Access) -> list[str]:
        """Declare the C pointers to an access and to its transposed copy."""
        names = self.names
        return [
            *names.at_row("row0"),
            f"const {names.c_type(access)} *from = {names.place(access)};",
            f"{names.held} *to = {names.transposed(access)};",
        ]

    def _transpose(self, access: Access, start: Sequence[Index]) -> str:
        """Return the C statement that transposes the block at a column and a row."""
        (j, i), step, pitch = start, self.names.plane.column_step(access), self.names.tiling.pitch
        assert step is not None
        place = f"from + {(j * step + i).text}"
        call = f"{place}, {step}, columns - {j}, rows - {i}, to + {(i * pitch + j).text}"
        return f"tw_turn_{self.names.dtype(access)}({call}, {pitch});"

    # -- while the rows of the tile before are written -----------------------------------------

    def function(self) -> list[str]:
        """Return the C function ``ENTRY_turn(call, turned, at, block)``, which transposes one block
        of each array for the tile that begins at the indices ``at``."""
        names = self.names
        starts = [f"{name} = at[{i}]" for i, name in enumerate(names.starts)]
        block = index("block", prod(self._counts))
        return [
            f"static inline void {self.entry}_turn(",
            f"    const tw_call *call, {names.held} *restrict turned, const long *at,",
            "    long block) {",
            f"  const long {', '.join(starts)};",
            *indented(names.sizes),
            *indented(spatial(*self._counts).emit(block, self._one)),
            "}",
        ]

    def _one(self, number: Sequence[Index]) -> list[str]:
        start = [n * self._side for n in number]
        blocks = [
            ["{", *indented([*self._ends(access), self._transpose(access, start)]), "}"]
            for access in self.names.plane.transposed
        ]
        inside = f"if ({start[0]} < columns && {start[1]} < rows) {{"
        return [inside, *indented([line for lines in blocks for line in lines]), "}"]

    def share(self, row: Index) -> list[str]:
        """Return the C that transposes the blocks for the ``next`` tile that are due before a row
        is written; the C variable ``block`` counts them."""
        due = f"block * {self.names.tiling.tile_rows} < {(row + 1) * self._usual}"
        return self._while(due)

    def remaining(self) -> list[str]:
        """Return the C that transposes the blocks that remain after all rows."""
        return self._while(f"block < {prod(self._counts)}")

    def _while(self, due: str) -> list[str]:
        call = f"{self.entry}_turn(call, ahead, next, block)"
        return [f"for (; next && {due}; block++) {call};"]
