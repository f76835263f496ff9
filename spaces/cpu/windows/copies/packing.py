"""The right operand, packed through its places: panels of tile width, a vector of columns after
the other.

Where neighbours along the depth lie side by side, blocks of whole vectors are transposed. Else
columns come in runs, side by side or equally far apart, and each run is copied for all of the depth
at once: a run of an image's line is looked for once.
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


@dataclass(frozen=True)
class PackedBlock:
    """A block of up to ``turns`` turns of the depth's outermost loop by ``panels`` times ``width``
    columns."""

    nest: Nest
    turns: int
    panels: int
    width: int
    lanes: int
    dtype: str
    """Of the source; packed elements are float32."""

    @cached_property
    def panel(self) -> Strided:
        """Where a panel keeps (depth, column)."""
        return row_major(self.turns * self.nest.terms_a_turn, self.width)

    @cached_property
    def layout(self) -> Layout:
        """Where the block keeps (depth, column)."""
        return row_major(1, self.panels) * self.panel

    @property
    def floats(self) -> int:
        """Of the block, and what transposed vectors write past its end."""
        return self.layout.size + self.lanes * self.width

    @property
    def turned(self) -> bool:
        """Whether vectors of the source run along the depth."""
        strides = [loop.strides[RIGHT] for loop in (self.nest.packed[-1], self.nest.column)]
        return len(self.nest.runs) == 1 and strides[0] == 1 != strides[1]

    def function(self, name: str) -> list[str]:
        """C function ``name(p, q, first, columns, turns)``: from p, the source at the first
        column and the block's first turn, to q; ``first`` is the number of the first column."""
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
            body = self._transposed(j) if self.turned else self._runs(j)
            return [f"const long left = tw_least(columns - {j}, {self.width});", *body]

        return tiles.emit(0, panel, extents=("columns",), prefix="j")

    def _transposed(self, j: Index) -> list[str]:
        """A panel in blocks of as many columns as terms."""
        outer = self.nest.packed[:-1]
        stride = self.nest.column.strides[RIGHT]
        lanes, column = self.lanes, index("first") + j

        def block(at: Sequence[Index]) -> list[str]:
            *turns, k, v = at
            p = (column * stride + v * stride + self._place(turns) + k).text
            q = self.layout.emit(self._depth(turns) + k, j + v)
            sizes = f"left - {v}, {self._most(outer)} - {k}"
            return [
                f"tw_transpose_{self.dtype}(p + {p}, {stride}, {sizes}, q + {q}, {self.width});"
            ]

        counts = [self._extents[rank] for rank in range(len(outer))]
        steps = ceil_div(self._extents[-1], lanes)
        blocks = repeat(*counts, steps, ceil_div(self.width, lanes))
        tasks = blocks * spatial(*(1 for _ in outer), lanes, lanes)
        return tasks.emit(0, block, extents=(*self._limits, "left"), prefix="k")

    def _runs(self, j: Index) -> list[str]:
        """A panel run by run, each for all of the depth."""
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
        """Turns of the outermost loop as it is packed, in one of the depth's."""
        return self.nest.packed[0].extent // self.nest.depth[0].extent

    @cached_property
    def _extents(self) -> tuple[int, ...]:
        """The most turns of each loop in a block."""
        rest = (loop.extent for loop in self.nest.packed[1:])
        return (self.turns * self._first, *rest)

    @property
    def _limits(self) -> tuple[int | str, ...]:
        """The turns of each loop that a block has."""
        first = f"turns * {self._first}" if self._first > 1 else "turns"
        return (first, *self._extents[1:])

    def _most(self, outer: Sequence[object]) -> str:
        """How many terms the innermost loop has."""
        return str(self._extents[-1]) if outer else str(index(str(self._limits[0])))

    def _place(self, turns: Sequence[Index], last: Index | None = None) -> Index:
        """Where the source is in turns of all loops, or of all but the innermost."""
        at = [*turns, *([last] if last is not None else [])]
        pairs = zip(at, self.nest.packed, strict=False)
        return sum((i * loop.strides[RIGHT] for i, loop in pairs), Index())

    def _depth(self, turns: Sequence[Index]) -> Index:
        """The number of the first term in turns of all loops but the innermost."""
        sizes = [prod(self._extents[rank + 1 :]) for rank in range(len(turns))]
        return sum((i * size for i, size in zip(turns, sizes, strict=True)), Index())
