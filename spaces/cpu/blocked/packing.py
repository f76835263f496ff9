"""Packed blocks: parts of an operand, copied to where register tiles read them best.

A left block keeps the order of its source. If the depth is contiguous, rows are copied one by one
and padded, so that they do not compete for the same cache sets; an operand that is contiguous along
rows becomes panels of tile height. A right block is always panels of tile width, transposed if the
source is contiguous along the depth. Why panels: Goto and van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", ACM TOMS 2008, section 4. Elements become float32, or stay
pairs of bfloat16. The depth counts steps (see ``spaces.cpu.tiles.steps``).

Each function writes whole vectors at ascending addresses. What a vector writes past its panel is
overwritten by the next one, and a block needs room for ``lanes`` elements behind its end.
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
    """A packed block of ``panels`` times ``height`` rows by ``depth``, which is a multiple of
    ``lanes``."""

    panels: int
    height: int
    depth: int
    lanes: int
    dtype: str
    """The type of the packed elements."""
    source: Stream

    @cached_property
    def panel(self) -> Strided:
        """The layout (row, depth) of one panel."""
        if self.source.deep:
            return row_major(self.height, self.depth).padded(1, self.lanes)
        return column_major(self.height, self.depth)

    @cached_property
    def layout(self) -> Layout:
        """The layout (row, depth) of the block."""
        return row_major(self.panels, 1) * self.panel

    def function(self, name: str) -> list[str]:
        """Return the C function ``name(p, q, rows, depth)`` that packs from ``p``, a place in the
        source, to ``q``. It takes the number of terms instead of ``depth`` if that is odd."""
        return _function(
            f"{name}(const {self.source.c_type} *restrict p, {C_TYPES[self.dtype]} *restrict q, "
            f"long rows, long {self.source.extent})",
            self.source,
            _body(self),
        )

    def body(self) -> list[str]:
        """Return the lines of the function's body."""
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
    """A packed block of ``depth``, which is a multiple of ``lanes``, by ``panels`` times ``width``
    columns."""

    panels: int
    width: int
    depth: int
    lanes: int
    dtype: str
    """The type of the packed elements."""
    source: Stream

    @cached_property
    def panel(self) -> Strided:
        """The layout (depth, column) of one panel."""
        return row_major(self.depth, self.width)

    @cached_property
    def layout(self) -> Layout:
        """The layout (depth, column) of the block."""
        return row_major(1, self.panels) * self.panel

    def function(self, name: str) -> list[str]:
        """Return the C function ``name(p, q, depth, columns)`` that packs from ``p``, a place in
        the source, to ``q``. It takes the number of terms instead of ``depth`` if that is odd."""
        signature = (
            f"{name}(const {self.source.c_type} *restrict p, {C_TYPES[self.dtype]} *restrict q, "
            f"long {self.source.extent}, long columns)"
        )
        return _function(signature, self.source, _body(self))

    def body(self) -> list[str]:
        """Return the lines of the function's body."""
        source = self.source
        # Rows of the source that run along the depth may all fall into one set of the
        # cache: a whole line of each is used before the next rows are.
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
    """Return the lines of a block's function; a search tries the same blocks in many kernels."""
    return tuple(block.body())


def _function(signature: str, source: Stream, body: Sequence[str]) -> list[str]:
    return [
        f"static __attribute__((noinline)) void {signature} {{",
        *(["  const long depth = (terms + 1) / 2;"] * source.odd),
        *(f"  {line}" for line in body),
        "}",
    ]
