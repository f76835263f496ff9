"""Packed blocks: parts of an operand copied to where the register tile reads them best.

A left block keeps the order of its source: contiguous depth is copied row by row, the rows a
little apart so that they do not compete for the same cache sets; an operand contiguous along rows
becomes panels of tile height. A right block is always panels of tile width, transposed on the way
where the source is contiguous along the depth. Why panels: Goto and van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", ACM TOMS 2008, section 4. Elements become float32, or
stay pairs of bfloat16. Depth counts steps (see ``spaces.cpu.tiles.steps``).

Every function writes whole vectors at ascending addresses. What a vector writes past its panel is
overwritten by the next one, and a block needs ``lanes`` elements to spare after its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Layout, Strided, column_major, row_major
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import LINE
from tilewright.spaces.cpu.tiles.steps import Stream
from tilewright.spaces.cpu.vectors.simd import C_TYPES

REMEMBERED = 512  # texts of functions


@dataclass(frozen=True)
class LeftBlock:
    """A block of ``panels`` times ``height`` rows by ``depth``, a multiple of ``lanes``."""

    panels: int
    height: int
    depth: int
    lanes: int
    dtype: str
    """Of the packed elements."""
    source: Stream

    @cached_property
    def panel(self) -> Strided:
        """Where a panel keeps (row, depth)."""
        if self.source.deep:
            return row_major(self.height, self.depth).padded(1, self.lanes)
        return column_major(self.height, self.depth)

    @cached_property
    def layout(self) -> Layout:
        """Where the block keeps (row, depth)."""
        return row_major(self.panels, 1) * self.panel

    def function(self, name: str) -> list[str]:
        """C function ``name(p, q, rows, depth)``: from p, in the source, to q; it takes terms
        for depth if they are odd."""
        return _function(
            f"{name}(const {self.source.c_type} *restrict p, {C_TYPES[self.dtype]} *restrict q, "
            f"long rows, long {self.source.extent})",
            self.source,
            _body(self),
        )

    def body(self) -> list[str]:
        """The lines within the function."""
        if self.source.deep:
            grid = repeat(self.panels * self.height, self.depth // self.lanes)
            tiles = grid * spatial(1, self.lanes)
        else:
            tiles = repeat(self.panels, self.depth) * spatial(self.height, 1)

        def deep_row(indices: Sequence[Index]) -> list[str]:
            i, k = indices
            return [self._copy(i, k, self.source.left(k))]

        def panel_column(indices: Sequence[Index]) -> list[str]:
            i, k = indices
            pieces = repeat(-(-self.height // self.lanes)) * spatial(self.lanes)
            return [
                f"const long left = rows - {i} < {self.height} ? rows - {i} : {self.height};",
                *pieces.emit(
                    0,
                    lambda v: [self._copy(i + v[0], k, f"left - {v[0]}")],
                    extents=("left",),
                    unroll=True,
                ),
            ]

        copy = deep_row if self.source.deep else panel_column
        return tiles.emit(0, copy, extents=("rows", "depth"))

    def _copy(self, i: Index, k: Index, count: str) -> str:
        load = self.source.load(f"p + {self.source.layout.emit(i, k)}", count, k)
        return f"tw_store_{self.dtype}(q + {self.layout.emit(i, k)}, {load});"


@dataclass(frozen=True)
class RightBlock:
    """A block of ``depth``, a multiple of ``lanes``, by ``panels`` times ``width`` columns."""

    panels: int
    width: int
    depth: int
    lanes: int
    dtype: str
    """Of the packed elements."""
    source: Stream

    @cached_property
    def panel(self) -> Strided:
        """Where a panel keeps (depth, column)."""
        return row_major(self.depth, self.width)

    @cached_property
    def layout(self) -> Layout:
        """Where the block keeps (depth, column)."""
        return row_major(1, self.panels) * self.panel

    def function(self, name: str) -> list[str]:
        """C function ``name(p, q, depth, columns)``: from p, in the source, to q; it takes terms
        for depth if they are odd."""
        signature = (
            f"{name}(const {self.source.c_type} *restrict p, {C_TYPES[self.dtype]} *restrict q, "
            f"long {self.source.extent}, long columns)"
        )
        return _function(signature, self.source, _body(self))

    def body(self) -> list[str]:
        """The lines within the function."""
        source = self.source
        # Of a row that runs along the depth, a whole cache line is taken before the next rows: as
        # many as a panel has may fall into one set of the cache.
        step = max(self.lanes, LINE) if source.deep else 1
        tiles = repeat(ceil_div(self.depth, step), self.panels, order=(1, 0)) * spatial(
            step, self.width
        )
        vectors = repeat(self.width // self.lanes, ceil_div(step, self.lanes)) * spatial(
            self.lanes, self.lanes if source.deep else 1
        )

        def copy(k: Index, j: Index, v: Index) -> list[str]:
            p, q = f"p + {source.layout.emit(k, j + v)}", f"q + {self.layout.emit(k, j + v)}"
            if not source.deep:
                return [f"tw_store_{self.dtype}({q}, {source.load(p, f'left - {v}', k)});"]
            stride, ld = source.strides[1], self.width
            sizes = f"left - {v}, {source.left(k)}"
            return [f"tw_transpose_{source.dtype}({p}, {stride}, {sizes}, {q}, {ld});"]

        def row(indices: Sequence[Index]) -> list[str]:
            k, j = indices
            pieces = vectors.emit(
                0,
                lambda at: copy(k + at[1], j, at[0]),
                extents=("left", f"depth - {k}" if step > self.lanes else None),
                unroll=True,
            )
            return [f"const long left = columns - {j};", *pieces]

        return tiles.emit(0, row, extents=("depth", "columns"))


@lru_cache(maxsize=REMEMBERED)
def _body(block: LeftBlock | RightBlock) -> Sequence[str]:
    """A search tries the same blocks in many kernels."""
    return tuple(block.body())


def _function(signature: str, source: Stream, body: Sequence[str]) -> list[str]:
    return [
        f"static __attribute__((noinline)) void {signature} {{",
        *(["  const long depth = (terms + 1) / 2;"] * source.odd),
        *(f"  {line}" for line in body),
        "}",
    ]
