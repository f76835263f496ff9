"""The C of sums: weights times the rows that a matrix has for keys, in place or copied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cpu.chained.access import Access, copied_row
from tilewright.spaces.cpu.chained.blocks import Blocks
from tilewright.spaces.cpu.chained.chain import weight_tiles
from tilewright.spaces.cpu.chained.tiles import sums, tile, tiles_of
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.derivation.chained.view import Chained, Weighing
from tilewright.spaces.kernels.text import C


@dataclass(frozen=True)
class Values:
    """The ``number``-th matrix that weights multiply; ``entry`` begins the names of all
    functions."""

    access: Access[Chained]
    blocks: Blocks
    weighing: Weighing
    number: int
    entry: str

    @property
    def functions(self) -> list[str]:
        """The C text of the functions that the other lines call."""
        return [line for each in self._tiles for line in each.source()]

    def copies(self) -> list[str]:
        """Return the lines that copy the matrix's rows for a tile of keys, if they are to be
        copied."""
        if not self.blocks.copied:
            return []
        to = f"values{self.number} + k * sum_stride"
        matrix, width = self.weighing.matrix, self.access.view.width
        row = copied_row(self.access.at_key("key"), matrix, width, to, self.blocks.lanes)
        return C.loop("k", "count", ["const long key = tile + k;", *row])

    def sums(self) -> list[str]:
        """Return the lines that multiply a block's weights by a tile's rows, and add them to the
        sums; the first tile sets these."""
        weights = weight_tiles(self.access.view)[self.weighing.weight]
        arguments = (
            f"{weights} + r * score_stride, {self._rows} + e, "
            f"sums{self.number} + r * sum_stride + e, count, tile > first_tile"
        )
        return sums(self._tiles, self.blocks.width, "r", "rows", arguments)

    def careful_sums(self) -> list[str]:
        """Return the same lines for rows of hidden keys that may be infinite or NaN: keys whose
        weight is :data:`HIDDEN` are skipped, and the others are added one by one."""
        width, lanes = self.access.view.width.extent, self.blocks.lanes
        weights = weight_tiles(self.access.view)[self.weighing.weight]
        value = f"tw_load_most_{self._dtype}({self._rows} + k * {self._step}L + e, {width} - e)"
        added = f"tw_fma(tw_set(weight), {value}, tw_load_most_float32(own + e, {width} - e))"
        store = f"tw_store_most_float32(own + e, {added}, {width} - e);"
        key = [
            f"const float weight = {weights}[r * score_stride + k];",
            "if (weight == 0.0f && __builtin_signbitf(weight)) continue;",
            *C.loop("e", width, store, step=lanes),
        ]
        row = [
            f"float *own = sums{self.number} + r * sum_stride;",
            f"if (tile == first_tile) for (long e = 0; e < {width}; e++) own[e] = 0.0f;",
            *C.loop("k", "count", key),
        ]
        return C.loop("r", "rows", row)

    @property
    def _rows(self) -> str:
        """The address of the row of a tile's first key."""
        read = self.access.view.in_place(self.weighing.matrix)
        if self.blocks.copied or read is None:
            return f"values{self.number}"
        return f"{self.access.of_batch(read)} + tile * {self._step}L"

    @property
    def _step(self) -> int:
        chained = self.access.view
        read = chained.in_place(self.weighing.matrix)
        if self.blocks.copied or read is None:
            return self.blocks.sum_stride
        return chained.step(read, chained.key)

    @property
    def _dtype(self) -> str:
        chained = self.access.view
        read = chained.in_place(self.weighing.matrix)
        if self.blocks.copied or read is None:
            return "float32"
        return chained.program.operand[read.name].dtype

    @cached_property
    def _tiles(self) -> list[RegisterTile]:
        return tiles_of(self.blocks.width, self.blocks.columns, self._tile)

    def _tile(self, columns: int) -> RegisterTile:
        b = self.blocks
        return tile(
            f"{self.entry}_value{self.number}_{columns}",
            b.lanes,
            (b.value_rows, columns, b.keys),
            (b.score_stride, 1),
            self._step,
            b.sum_stride,
            self._dtype,
            right_is_padded=False,
        )
