"""Tiles of a product that stay within it, so that nothing is tested where they are multiplied.

The last tile of a row or column of tiles is moved back until it ends with the output; elements that
it then shares with the tile before are computed twice and stored once. The remainder of the depth
comes first: the first step is short, and all that follow are whole. Only a tile larger than the
output still reaches beyond it, and so does the last one of rows whose number a call gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.spaces.cuda.blocks.copies.block_copy import Ends
from tilewright.spaces.cuda.blocks.copies.tile_copy import position_type
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.segments import row_end, segments_of


@dataclass(frozen=True)
class WholeTiles:
    """Places of tiles of ``block`` = (rows, columns) sums, in steps of ``depth`` terms."""

    product: Tiled
    block: tuple[int, int]
    depth: int

    def corner(self) -> list[str]:
        """Print where the tile (``tile_row``, ``tile_column``) and the step ``first_step`` begin.

        The lines declare ``row0``, ``column0``, ``depth0``, and ``first_terms``, the terms of that
        step.
        """
        position = position_type(self.product)
        late = self.depth - self._left_over
        depth0, terms = f"({position})first_step * {self.depth}", str(self.depth)
        if late:
            depth0 = f"first_step == 0 ? 0 : {depth0} - {late}"
            terms = f"first_step == 0 ? {self._left_over} : {self.depth}"
        return [
            *(line for rank in (0, 1) for line in self._start(rank)),
            f"{position} depth0 = {depth0};",
            f"const {position} first_terms = {terms};",
        ]

    @property
    def first(self) -> tuple[str | None, str | None]:
        """C names of the first row and column that no other tile has; None if all are the tile's
        own."""
        return self._first(0), self._first(1)

    def ends(self, rank: int, of_first_step: bool) -> Ends:
        """Return the ends of what a tile of the left (``rank`` 0) or right operand may read.

        They are those of the first step, or of the steps after it.
        """
        (extent, block), deep = self._size(rank), self._runs_deep(rank)
        width: int | str | None = extent if extent < block else None
        if self._is_open(rank):
            width = row_end(self.product)
        short = of_first_step and self._left_over < self.depth
        depth = "depth0 + first_terms" if short else None
        return (width, depth) if deep else (depth, width)

    @property
    def _left_over(self) -> int:
        """Terms of the first step of all."""
        return (self.product.terms - 1) % self.depth + 1

    def _start(self, rank: int) -> Iterator[str]:
        (extent, block), name = self._size(rank), ("row", "column")[rank]
        position = position_type(self.product)
        place = f"({position})tile_{name} * {block}"
        if rank == 0 and segments_of(self.product):
            last = max(extent - block, 0)
            yield f"const int row0 = first_row < {last} ? first_row : {last};"
            return
        if first := self._first(rank):
            yield f"const {position} {first} = {place};"
            place = f"{first} < {extent - block} ? {first} : {extent - block}"
        yield f"const {position} {name}0 = {place};"

    def _first(self, rank: int) -> str | None:
        extent, block = self._size(rank)
        if rank == 0 and segments_of(self.product):
            return "first_row"
        overlaps = extent > block and extent % block and not self._is_open(rank)
        return ("first_row", "first_column")[rank] if overlaps else None

    def _is_open(self, rank: int) -> bool:
        return rank == 0 and self.product.is_open

    def _size(self, rank: int) -> tuple[int, int]:
        return (self.product.rows, self.product.columns)[rank], self.block[rank]

    def _runs_deep(self, rank: int) -> bool:
        return (self.product.left_runs_deep, self.product.right_runs_deep)[rank]
