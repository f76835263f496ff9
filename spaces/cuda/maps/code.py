"""The CUDA C++ of a map: a tile of a plane for each block.

What turns is read along rows, as it lies in memory, and passes through shared memory, swizzled so
that lanes which read it along columns meet different banks. Everything else goes straight through
registers. As task mappings:

    blocks (outer loops, row tiles, column tiles)
        * repeat(rows, columns) * spatial(warps) * spatial(lanes along rows, lanes along columns)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda import whole_numbers
from tilewright.spaces.cuda.abi import C_TYPES, parameters
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.maps.context import MapContext
from tilewright.spaces.cuda.maps.lines import Lines
from tilewright.spaces.cuda.maps.sizes import loops_inside, width
from tilewright.spaces.cuda.maps.turning import Turning
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.order import ROWS
from tilewright.spaces.derivation.maps.plane import ALONG, SAME, TURNED
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.kernel import Call, Kernel, Launch, Source

HELPERS = """\
template <int V, int W, class T, class I>
TW_INLINE void tw_take(T (&to)[V], const T *from, I left) {
  if (left >= V) {
#pragma unroll
    for (int i = 0; i < V; i += W) tw::load_global<W>(to + i, from + i);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) to[i] = i < left ? tw::load_global(from + i) : T{};
  }
}
template <int V, int W, class T, class I>
TW_INLINE void tw_give(T *to, const T (&from)[V], I left) {
  if (left >= V) {
#pragma unroll
    for (int i = 0; i < V; i += W) tw::STORE<W>(to + i, from + i);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) if (i < left) tw::store_global(to + i, from[i]);
  }
}
"""
"""Vectors whose last elements may not be there."""


@dataclass(frozen=True)
class MapCode:
    """The kernel called ``entry`` of a map."""

    context: MapContext
    entry: str

    @property
    def _turning(self) -> Turning:
        return Turning(self.context)

    def kernel(self, prelude: str) -> Kernel:
        """The kernel as a whole; ``prelude`` defines the functions that are called."""
        launch = Launch(
            (int(self.context.sizes.tiles), 1, 1),
            (self.context.threads, 1, 1),
            shared_bytes=int(self.context.sizes.shared_bytes),
        )
        call = Call(self.entry, self.context.arguments, launches=(launch,))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The helpers, and the entry."""
        store = "store_stream" if self.context.values["stores"] == "stream" else "store_global"
        helpers = HELPERS.replace("STORE", store) + whole_numbers.HELPERS
        return helpers + "\n".join(self._entry()) + "\n"

    # -- the entry -----------------------------------------------------------------------------

    def _entry(self) -> list[str]:
        pointers = self.context.pointers
        named = [
            replace(a, array=replace(a.array, name=pointers[a.array.name]))
            for a in self.context.arguments
        ]
        counts = [int(count) for count in self.context.sizes.counts]
        *outer, row, column = range(len(counts))
        inner = (column, row) if self.context.values["order"] == ROWS else (row, column)
        blocks = spatial(*counts, order=(*outer, *inner))
        bounds, integer = f"__launch_bounds__({self.context.threads})", self.context.integer
        return [
            f'extern "C" __global__ void {bounds} {self.entry}({parameters(named)}) {{',
            *indented(blocks.emit("blockIdx.x", self._tile, integer=integer, language="cuda")),
            "}",
        ]

    def _tile(self, at: Sequence[Index]) -> list[str]:
        """All that a block does."""
        plane, integer = self.context.plane, self.context.integer
        *outer, row, column = at
        inside = loops_inside(plane)
        shared = (loop for loop in plane.outer if loop not in inside)
        lines = [
            f"const {integer} {loop.name} = {place.text};"
            for loop, place in zip(shared, outer, strict=True)
        ]
        lines += [
            f"const {integer} row0 = {(row * int(self.context.sizes.rows)).text};",
            f"const {integer} column0 = {(column * int(self.context.sizes.columns)).text};",
        ]
        if plane.transposed:
            lines += [
                "const u32 shared = tw::shared_base();",
                "const int thread = threadIdx.x;",
                *(line for access in plane.transposed for line in self._turning.read(access)),
                *(line for access in plane.transposed for line in self._turning.write(access)),
                "tw::sync_block();",
            ]
        return [*lines, *unrolled(self._mapping, THREAD, self._columns, "c")]

    # -- what is computed ----------------------------------------------------------------------

    @property
    def _mapping(self) -> TaskMapping:
        """Threads to vectors of columns: lanes side by side, then warps, then turns."""
        high, wide = (
            int(self.context.sizes.rows),
            int(self.context.sizes.columns) // self.context.vector,
        )
        lanes = int(self.context.sizes.lane_columns)
        lane_rows = WARP // lanes
        warps = self.context.threads // WARP
        across = min(warps, wide // lanes)
        down = warps // across
        turns = repeat(high // (lane_rows * down), wide // (lanes * across))
        return turns * spatial(down, across) * spatial(lane_rows, lanes)

    def _columns(self, at: Sequence[Index]) -> list[str]:
        """One vector of columns of each output."""
        plane = self.context.plane
        row, chunk = at
        vector, output = self.context.vector, plane.view.outputs[0]
        lines = Lines(self.context, output, plane.columns, "column0", vector)
        column = lines.place(chunk, int(self.context.sizes.columns) // vector) * vector
        left = self.context.left(plane.columns, vector)
        point = self.context.at(row, column)
        if ahead := lines.ahead():
            point = [self.context.at_row(row), *ahead, self.context.at_column(column)]
        return [
            *point,
            f"{self.context.within()}{{",
            f"  const {self.context.integer} left = {left};",
            *indented(self._turns(loops_inside(plane), row, column)),
            "}",
        ]

    def _turns(self, loops: Sequence[Loop], row: Index, column: Index) -> list[str]:
        """What is read and written at all turns of the loops that a block does by itself."""
        view = self.context.plane.view
        if loops:
            head = f"for ({self.context.integer} {loops[0].name} = 0; {loops[0].name} < "
            head += f"{loops[0].extent}; {loops[0].name}++) {{"
            return ["#pragma unroll", head, *indented(self._turns(loops[1:], row, column)), "}"]
        reads = [line for access in view.loaded for line in self._load(access, row, column)]
        return reads + [line for n in range(len(view.outputs)) for line in self._store(n)]

    def _load(self, access: Access, row: Index, column: Index) -> list[str]:
        plane, name, kind = (
            self.context.plane,
            self.context.names[access],
            C_TYPES[access.array.dtype],
        )
        how = plane.kind(access)
        if how == SAME:
            return [f"const {kind} {name} = tw::load_global({self.context.place(access)});"]
        declared = f"{kind} {name}[{self.context.vector}];"
        if how == TURNED:
            return [declared, *self._turning.load(access, row, column)]
        if how == ALONG:
            step = width(plane, access, self.context.vector)
            place = self.context.place(access)
            return [declared, f"tw_take<{self.context.vector}, {step}>({name}, {place}, left);"]
        line = f"{name}[i] = tw::load_global({self.context.place(access)});"
        return [declared, *self._elements("if (i < left) ", line)]

    def _elements(self, test: str, line: str) -> list[str]:
        """``line`` for each element of a vector, if the ``test`` holds; the variable of the columns
        goes along."""
        name, integer = self.context.plane.columns.name, self.context.integer
        return [
            "#pragma unroll",
            f"for (int i = 0; i < {self.context.vector}; i++) {{",
            f"  const {integer} first = {name};",
            f"  {{ const {integer} {name} = first + i; {test}{line} }}",
            "}",
        ]

    def _store(self, number: int) -> list[str]:
        output, value = (
            self.context.plane.view.outputs[number],
            self.context.plane.view.values[number],
        )
        kind = C_TYPES[output.array.dtype]
        step = width(self.context.plane, output, self.context.vector)
        written = f"tw::from_float<{kind}>({self.context.numbers.of(value)})"
        if moved := self.context.plane.view.moved(number):
            written = self.context.element(moved)
        line, place = f"y{number}[i] = {written};", self.context.place(output)
        return [
            f"{kind} y{number}[{self.context.vector}];",
            *self._elements("", line),
            f"tw_give<{self.context.vector}, {step}>({place}, y{number}, left);",
        ]
