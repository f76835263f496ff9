"""The C of scores: keys are packed once a product, or read in place, and multiplied in tiles.

Packed keys are panels as wide as a register tile of scores, with lanes along the keys. Keys that
are no array with steps (entries of pages, scaled elements, an expression of several arrays) are
computed one panel at a time before they are packed. Keys of many terms may be packed one tile at a
time, in steps of their depth that stay in the caches until all rows of a block have met them. If a
block has few rows, packing costs as much as the scores themselves: then lanes run along the depth
of keys in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.layout import strided
from tilewright.spaces.cpu.blocked.packing import RightBlock
from tilewright.spaces.cpu.chained.access import Access, copied_row
from tilewright.spaces.cpu.chained.blocks import DEPTH_STEP, Blocks
from tilewright.spaces.cpu.chained.tiles import tile
from tilewright.spaces.cpu.tiles.dot_tile import DotTile
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.cpu.tiles.steps import Stream
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.tree import Read


@dataclass(frozen=True)
class Keys:
    """The right operand of the scores; ``entry`` begins the names of all functions."""

    access: Access[Chained]
    blocks: Blocks
    entry: str

    @property
    def functions(self) -> list[str]:
        """The C text of the functions that the other lines call."""
        tiles = self._dot_tiles if self.blocks.dots else [self._tile]
        lines = [line for each in tiles for line in each.source()]
        return lines if self.blocks.dots else [*lines, *self._block.function(f"{self.entry}_pack")]

    def of_product(self, start: str, end: str) -> list[str]:
        """Return the lines that pack a product's keys ``start`` to ``end``; a panel begins at
        ``start``."""
        if self.blocks.dots or self.blocks.stepped:
            return []
        b, read = self.blocks, self._read
        if read:
            step = self.access.view.step(read, self.access.view.key)
            source = f"{self.access.of_batch(read)} + {start} * {step}L"
            place = f"packed + {start} * {b.whole_depth}L"
            return [f"{self.entry}_pack({source}, {place}, {b.depth}, {end} - {start});"]
        row = copied_row(
            self.access.at_key("key"), self.access.view.right, self.access.view.depth,
            f"computed + (key - first) * {b.left_stride}", b.lanes,
        )  # fmt: skip
        packed = f"computed, packed + first * {b.whole_depth}, {b.depth}, last - first"
        panel = [
            f"const long last = tw_least(first + {b.panel}, {end});",
            *C.loop("key", "last", row, first="first"),
            f"{self.entry}_pack({packed});",
        ]
        return C.loop("first", end, panel, first=start, step=b.panel)

    def scores(self) -> list[str]:
        """Return the lines that compute the scores of a block and a tile of keys."""
        b = self.blocks
        if b.stepped:
            return self._steps()
        if not b.dots:
            return self._loop("0", "count", b.panel, self._tile)
        whole, *rest = self._dot_tiles
        lines = self._loop("0", f"count / {b.panel} * {b.panel}", b.panel, whole)
        return lines + self._loop(f"count / {b.panel} * {b.panel}", "count", 1, (*rest, whole)[0])

    def _steps(self) -> list[str]:
        """Return the lines that pack and multiply a tile of keys, one step of its depth after the
        other."""
        assert self._read
        chained, b = self.access.view, self.blocks
        key, term = (chained.step(self._read, part) for part in (chained.key, chained.depth))
        source = f"{self.access.of_batch(self._read)} + tile * {key}L + d * {term}L"
        return [
            f"for (long d = 0; d < {b.depth}; d += {DEPTH_STEP}) {{",
            f"  const long terms = tw_least({DEPTH_STEP}, {b.depth} - d);",
            f"  {self.entry}_pack({source}, packed, terms, count);",
            f"  for (long v = 0; v < count; v += {b.panel})",
            f"    for (long r = 0; r < rows; r += {b.score_rows})",
            f"      {self._tile.name}(left + r * {b.left_stride} + d, packed + v * {DEPTH_STEP}, "
            "score + r * score_stride + v, terms, d > 0);",
            "}",
        ]

    def _loop(self, start: str, end: str, step: int, tile: RegisterTile | DotTile) -> list[str]:
        b = self.blocks
        keys = f"packed + (tile + v) * {b.whole_depth}L"
        if isinstance(tile, DotTile):
            assert self._read
            stride = self.access.view.step(self._read, self.access.view.key)
            keys = f"{self.access.of_batch(self._read)} + (tile + v) * {stride}L"
        return [
            f"for (long v = {start}; v < {end}; v += {step})",
            f"  for (long r = 0; r < rows; r += {b.score_rows})",
            f"    {tile.name}(left + r * {b.left_stride}, {keys}, "
            f"score + r * score_stride + v, {b.depth}, 0);",
        ]

    @property
    def _read(self) -> Read | None:
        """The array that holds the keys; None if they are computed."""
        return self.access.view.in_place(self.access.view.right)

    @cached_property
    def _block(self) -> RightBlock:
        """The packed block of all keys of a product, or of one panel if they are computed."""
        chained, b, read = self.access.view, self.blocks, self._read
        if read is None:
            steps, dtype, panels = (1, b.left_stride), "float32", 1
        else:
            steps = (chained.step(read, chained.depth), chained.step(read, chained.key))
            dtype = chained.program.operand[read.name].dtype
            panels = b.keys // b.panel if b.stepped else b.panels
        layout = strided((b.depth, chained.key.extent), steps)
        depth = DEPTH_STEP if b.stepped else b.whole_depth
        source = Stream(layout, dtype, deep=steps[0] == 1, apart=0)
        return RightBlock(panels, b.panel, depth, b.lanes, "float32", source)

    @cached_property
    def _tile(self) -> RegisterTile:
        b = self.blocks
        name, shape = f"{self.entry}_score", (b.score_rows, b.panel, b.depth)
        return tile(name, b.lanes, shape, (b.left_stride, 1), b.panel, b.score_stride)

    @cached_property
    def _dot_tiles(self) -> list[DotTile]:
        """The tile of a panel's keys, and that of a single key."""
        chained, b, read = self.access.view, self.blocks, self._read
        assert read
        steps = (1, chained.step(read, chained.key))
        return [
            DotTile(
                name=f"{self.entry}_score{keys}",
                rows=b.score_rows,
                columns=keys,
                lanes=b.lanes,
                unroll=1,
                prefetch_columns=0,
                left=strided((b.score_rows, b.depth), (b.left_stride, 1)),
                right=strided((b.depth, keys), steps),
                sums=strided((b.score_rows, keys), (b.score_stride, 1)),
                right_dtype=chained.program.operand[read.name].dtype,
            )
            for keys in dict.fromkeys((b.panel, 1))
        ]
