"""The right operand, packed into panels of tile width, one vector of columns after the other.

If neighbours along the depth are adjacent in memory, blocks of whole vectors are transposed, of
columns with one stride or of such whose places are computed for a panel. Else columns come in runs
with one stride, and each run is copied for all of the depth at once, so that the place of a run in
a line of an image is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Layout, Strided, row_major
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.nest import RIGHT, Nest, offset

SHORTER = 4
"""Times that runs of columns are shorter than the runs of terms that are transposed instead."""


@dataclass(frozen=True)
class PackedBlock:
    """A packed block of up to ``turns`` turns of the depth's outermost loop and ``panels`` panels
    of ``width`` columns."""

    nest: Nest
    turns: int
    panels: int
    width: int
    lanes: int
    dtype: str
    """The type of the source; packed elements are float32."""

    @cached_property
    def panel(self) -> Strided:
        """The layout (depth, column) of one panel."""
        return row_major(self.turns * self.nest.terms_a_turn, self.width)

    @cached_property
    def layout(self) -> Layout:
        """The layout (depth, column) of the block."""
        return row_major(1, self.panels) * self.panel

    @property
    def floats(self) -> int:
        """The floats of the block, with those that transposed vectors write past its end."""
        return self.layout.size + self.lanes * self.width

    @property
    def transposed(self) -> bool:
        """True if vectors of the source run along the depth."""
        depth, runs = self.nest.packed[-1], self.nest.runs
        if depth.strides[RIGHT] != 1:
            return False
        return self.nest.column.strides[RIGHT] != 1 if len(runs) == 1 else self.apart

    @property
    def apart(self) -> bool:
        """True if the columns of a vector come in runs that are far shorter than those of the
        depth, as those of a filter are beside those of an image's lines."""
        depth, runs = self.nest.packed[-1], self.nest.runs
        return len(runs) > 1 and SHORTER * runs[-1].extent <= depth.extent

    def function(self, name: str) -> list[str]:
        """Return the C function ``name(p, q, first, columns, turns)`` that packs a block.

        It reads from ``p``, the source at the block's first turn, and writes to ``q``; ``first`` is
        the number of the block's first column.
        """
        return [
            f"static __attribute__((noinline)) void {name}(",
            f"    const {C_TYPES[self.dtype]} *restrict p, float *restrict q, long first,",
            "    long columns, long turns) {",
            *indented(self._panels()),
            "}",
        ]

    def _panels(self) -> list[str]:
        tiles = repeat(self.panels) * spatial(self.width)

        def panel(at: Sequence[Index]) -> list[str]:
            (j,) = at
            body = self._transposed(j) if self.transposed else self._runs(j)
            return [f"const long left = tw_least(columns - {j}, {self.width});", *body]

        return tiles.emit(0, panel, extents=("columns",), prefix="j")

    def _transposed(self, j: Index) -> list[str]:
        """Write a panel in transposed blocks of as many terms as columns, a vector each way."""
        outer = self.nest.packed[:-1]
        stride = self.nest.column.strides[RIGHT]
        lanes, column = self.lanes, index("first") + j

        def block(at: Sequence[Index]) -> list[str]:
            *turns, k, v = at
            start = self._place(turns) + k
            q = self.layout.emit(self._depth(turns) + k, j + v)
            sizes = f"left - {v}, {self._most(outer)} - {k}, q + {q}, {self.width}"
            if self.apart:
                place = f"p + {start.text}, at + {v}"
                return [f"tw_transpose_apart_{self.dtype}({place}, {sizes});"]
            p = (column * stride + v * stride + start).text
            return [f"tw_transpose_{self.dtype}(p + {p}, {stride}, {sizes});"]

        counts = [self._extents[rank] for rank in range(len(outer))]
        steps = ceil_div(self._extents[-1], lanes)
        blocks = repeat(*counts, steps, ceil_div(self.width, lanes))
        tasks = blocks * spatial(*(1 for _ in outer), lanes, lanes)
        return [
            *(self._places(j) if self.apart else []),
            *tasks.emit(0, block, extents=(*self._limits, "left"), prefix="k"),
        ]

    def _places(self, j: Index) -> list[str]:
        """Write the places of a panel's columns."""
        column = index("column", self.nest.column.extent)
        size = ceil_div(self.width, self.lanes) * self.lanes
        return [
            f"long at[{size}];",
            "for (long i = 0; i < left; i++) {",
            f"  const long column = first + {j} + i;",
            f"  at[i] = {offset(self.nest.runs, column, RIGHT)};",
            "}",
        ]

    def _runs(self, j: Index) -> list[str]:
        """Write a panel run by run, each for all of the depth."""
        run = self.nest.runs[-1]
        column = index("column", self.nest.column.extent)
        return [
            "for (long done = 0; done < left;) {",
            f"  const long column = first + {j} + done;",
            f"  const long run = tw_least({run.extent} - {column % run.extent}, left - done);",
            f"  const {C_TYPES[self.dtype]} *from = p + {offset(self.nest.runs, column, RIGHT)};",
            *indented(self._run(j)),
            "  done += run;",
            "}",
        ]

    def _run(self, j: Index) -> list[str]:
        stride, lanes = self.nest.runs[-1].strides[RIGHT], self.lanes

        def copy(at: Sequence[Index]) -> list[str]:
            *turns, v = at
            p = f"from + {(self._place(turns[:-1], turns[-1]) + v * stride).text}"
            q = f"q + {self.layout.emit(self._depth(turns[:-1]) + turns[-1], j)} + done + {v}"
            if stride == 1:
                value = f"tw_load_most_{self.dtype}({p}, run - {v})"
            else:
                value = f"tw_gather_{self.dtype}({p}, {stride}, run - {v})"
            return [f"tw_store_most_float32({q}, {value}, run - {v});"]

        vectors = ceil_div(min(self.width, self.nest.runs[-1].extent), lanes)
        tasks = repeat(*self._extents, vectors) * spatial(*(1 for _ in self._extents), lanes)
        return tasks.emit(0, copy, extents=(*self._limits, "run"), prefix="k")

    # -- the depth ---------------------------------------------------------------------------------

    @property
    def _first(self) -> int:
        """Turns of the outermost loop of packing in one turn of the depth's outermost loop."""
        return self.nest.packed[0].extent // self.nest.depth[0].extent

    @cached_property
    def _extents(self) -> tuple[int, ...]:
        """The most turns that each loop has in a block."""
        rest = (loop.extent for loop in self.nest.packed[1:])
        return (self.turns * self._first, *rest)

    @property
    def _limits(self) -> tuple[int | str, ...]:
        """The turns that each loop has in the block at hand, as C text where they are known only
        there."""
        first = f"turns * {self._first}" if self._first > 1 else "turns"
        return (first, *self._extents[1:])

    def _most(self, outer: Sequence[object]) -> str:
        """Return the number of terms of the innermost loop."""
        return str(self._extents[-1]) if outer else str(index(str(self._limits[0])))

    def _place(self, turns: Sequence[Index], last: Index | None = None) -> Index:
        """Return the source's offset at turns of all loops, or of all but the innermost without
        ``last``."""
        at = [*turns, *([last] if last is not None else [])]
        pairs = zip(at, self.nest.packed, strict=False)
        return sum((i * loop.strides[RIGHT] for i, loop in pairs), Index())

    def _depth(self, turns: Sequence[Index]) -> Index:
        """Return the number of the first term at turns of all loops but the innermost."""
        sizes = [prod(self._extents[rank + 1 :]) for rank in range(len(turns))]
        return sum((i * size for i, size in zip(turns, sizes, strict=True)), Index())
