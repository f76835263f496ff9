"""The CUDA C++ of a map: a tile of a plane for each block.

What turns is read along rows, as it lies in memory, and passes through shared memory, swizzled so
that lanes which read it along columns meet different banks. Everything else goes straight through
registers. As task mappings:

    blocks (outer loops, row tiles, column tiles)
        * repeat(rows, columns) * spatial(warps) * spatial(lanes along rows, lanes along columns)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.index import Index, index
from spaces.algebra.layout import Layout, row_major, swizzled
from spaces.algebra.mapping import TaskMapping, repeat, spatial
from spaces.algebra.mapping_emit import indented
from spaces.array import Array
from spaces.cuda.abi import C_TYPES
from spaces.cuda.blocks.unrolled import THREAD, unrolled
from spaces.cuda.maps.sizes import ROWS, WARP, MapSizes, loops_inside, width
from spaces.cuda.maps.values import ScalarValues
from spaces.derivation.maps.nest import Loop
from spaces.derivation.maps.plane import ALONG, SAME, TURNED, Plane
from spaces.derivation.maps.view import Access
from spaces.kernel import Kernel, Launch
from spaces.schedule import Value

LARGEST = 2**31
"""Elements of an array up to which 32 bits say where they are."""

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
template <class I> TW_INLINE I tw_quotient(I x, int d) { return x / d - (x % d < 0); }
template <class T> TW_INLINE int tw_entry(const T *place, int below) {
  const int i = (int)tw::load_global(place);
  return i < 0 ? 0 : i < below ? i : below - 1;
}
"""
"""Vectors whose last elements may not be there, and entries of index tables, bounded so that no
read is wild."""


@dataclass(frozen=True)
class MapCode:
    """The kernel called ``entry`` of a map, whose arguments are ``operands``."""

    plane: Plane
    operands: Sequence[Array]
    values: Mapping[str, Value]
    entry: str

    def kernel(self, prelude: str) -> Kernel:
        """The kernel as a whole; ``prelude`` defines the functions that are called."""
        return Kernel(
            language="cuda",
            entry=self.entry,
            prelude=prelude,
            source=self.source,
            arguments=tuple(self.operands),
            outputs=len(self.plane.view.outputs),
            launch=Launch(
                (int(self.sizes.tiles), 1, 1),
                (self.threads, 1, 1),
                shared_bytes=int(self.sizes.shared_bytes),
            ),
        )

    @property
    def source(self) -> str:
        """The helpers, and the entry."""
        store = "store_stream" if self.values["stores"] == "stream" else "store_global"
        return HELPERS.replace("STORE", store) + "\n".join(self._entry()) + "\n"

    # -- sizes and names -----------------------------------------------------------------------

    @cached_property
    def sizes(self) -> MapSizes:
        """The tiles."""
        return MapSizes(self.plane, self.values)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return int(self.sizes.threads)

    @property
    def vector(self) -> int:
        """Elements of a vector."""
        return int(self.sizes.vector)

    @cached_property
    def _integer(self) -> str:
        return "i64" if any(o.size >= LARGEST for o in self.operands) else "int"

    @cached_property
    def _pointers(self) -> dict[str, str]:
        return {operand.name: f"x{i}" for i, operand in enumerate(self.operands)}

    @cached_property
    def _names(self) -> dict[Access, str]:
        """C variables that hold a vector of what is read."""
        return {access: f"v{i}" for i, access in enumerate(self.plane.view.loaded)}

    @cached_property
    def _numbers(self) -> ScalarValues:
        """Values of element ``i`` of the vectors that were read."""
        view = self.plane.view
        loaded = {access: f"tw::to_float({self._element(access)})" for access in view.loaded}
        return ScalarValues(view, self._pointers, loaded, self._integer)

    def _element(self, access: Access) -> str:
        """Element ``i`` of what was read."""
        return self._names[access] + ("" if self.plane.kind(access) == SAME else "[i]")

    def _place(self, access: Access) -> str:
        """Where an access is at the point of the loops' variables."""
        offset = self._numbers.whole(access.offset)
        return f"{self._pointers[access.array.name]} + {offset}"

    # -- the entry -----------------------------------------------------------------------------

    def _entry(self) -> list[str]:
        written = {output.array.name for output in self.plane.view.outputs}
        parameters = []
        for operand in self.operands:
            constant = "" if operand.name in written else "const "
            pointer = self._pointers[operand.name]
            parameters.append(f"{constant}{C_TYPES[operand.dtype]} *__restrict__ {pointer}")
        counts = [int(count) for count in self.sizes.counts]
        *outer, row, column = range(len(counts))
        inner = (column, row) if self.values["order"] == ROWS else (row, column)
        blocks = spatial(*counts, order=(*outer, *inner))
        bounds = f"__launch_bounds__({self.threads})"
        return [
            f'extern "C" __global__ void {bounds} {self.entry}({", ".join(parameters)}) {{',
            *indented(blocks.emit("blockIdx.x", self._tile, integer="int", language="cuda")),
            "}",
        ]

    def _tile(self, at: Sequence[Index]) -> list[str]:
        """All that a block does."""
        plane, integer = self.plane, self._integer
        *outer, row, column = at
        inside = loops_inside(plane)
        shared = (loop for loop in plane.outer if loop not in inside)
        lines = [
            f"const {integer} {loop.name} = {place.text};"
            for loop, place in zip(shared, outer, strict=True)
        ]
        lines += [
            f"const {integer} row0 = {(row * int(self.sizes.rows)).text};",
            f"const {integer} column0 = {(column * int(self.sizes.columns)).text};",
        ]
        if plane.turned:
            lines += [
                "const u32 shared = tw::shared_base();",
                "const int thread = threadIdx.x;",
                *(line for access in plane.turned for line in self._read_along_rows(access)),
                *(line for access in plane.turned for line in self._exchange(access)),
                "tw::sync_block();",
            ]
        return [*lines, *unrolled(self._mapping, THREAD, self._columns, "c")]

    def _at(self, row: Index, column: Index) -> list[str]:
        """The variables of the two loops of the plane, at a point of the tile."""
        integer = self._integer
        lines = [f"const {integer} {self.plane.columns.name} = column0 + {column};"]
        if self.plane.rows:
            lines.append(f"const {integer} {self.plane.rows.name} = row0 + {row};")
        return lines

    def _within(self) -> str:
        """A test that the variables of the plane are within it; empty if all tiles are whole."""
        plane, tests = self.plane, []
        if plane.width % int(self.sizes.columns):
            tests.append(f"{plane.columns.name} < {plane.width}")
        if plane.rows and plane.height % int(self.sizes.rows):
            tests.append(f"{plane.rows.name} < {plane.height}")
        return f"if ({' && '.join(tests)}) " if tests else ""

    def _left(self, loop: Loop, vector: int) -> str:
        """How many elements there are from a vector's first on, at least."""
        return f"{loop.extent} - {loop.name}" if loop.extent % vector else str(vector)

    # -- what turns ----------------------------------------------------------------------------

    def _reads(self, access: Access) -> int:
        """Vectors along rows that a thread reads of what turns."""
        return int(self.sizes.rows * self.sizes.columns) // (self._long(access) * self.threads)

    def _long(self, access: Access) -> int:
        """Elements of a vector along rows."""
        return min(self.vector, 16 // access.array.element.bytes)

    def _along_rows(self, access: Access) -> tuple[Index, Index]:
        """Row and column of vector ``e`` of a thread: neighbours have neighbouring rows."""
        of_row = int(self.sizes.rows) // self._long(access)
        number = index("e", self._reads(access)) * self.threads + index("thread", self.threads)
        return number % of_row * self._long(access), number // of_row

    def _layout(self, access: Access) -> Layout:
        """Where shared memory has the element of a column and a row of the tile."""
        rows, long = int(self.sizes.rows), self._long(access)
        plain = row_major(int(self.sizes.columns), rows)
        bits = (rows // long).bit_length() - 1
        base = long.bit_length() - 1
        shift = (rows * self.vector // long).bit_length() - 1
        return swizzled(plain, bits, base, shift) if bits else plain

    def _shared(self, access: Access) -> str:
        """The address of what turns of an array."""
        before = self.plane.turned[: self.plane.turned.index(access)]
        points = int(self.sizes.rows * self.sizes.columns)
        return f"(shared + {points * sum(a.array.element.bytes for a in before)})"

    def _loop(self, access: Access, lines: Sequence[str]) -> list[str]:
        count = self._reads(access)
        return ["#pragma unroll", f"for (int e = 0; e < {count}; e++) {{", *indented(lines), "}"]

    def _read_along_rows(self, access: Access) -> list[str]:
        plane, name, long = self.plane, self._names[access], self._long(access)
        assert plane.rows
        kind = C_TYPES[access.array.dtype]
        step = width(plane, access, long)
        left = self._left(plane.rows, long)
        to, place = f"{name}_rows[e]", self._place(access)
        lines = [
            *self._at(*self._along_rows(access)),
            f"{self._within()}tw_take<{long}, {step}>({to}, {place}, {left});",
        ]
        return [f"{kind} {name}_rows[{self._reads(access)}][{long}];", *self._loop(access, lines)]

    def _exchange(self, access: Access) -> list[str]:
        row, column = self._along_rows(access)
        place = self._layout(access).index([column, row]) * access.array.element.bytes
        to = f"{self._shared(access)} + {place}"
        line = f"tw::store_shared<{self._long(access)}>({to}, {self._names[access]}_rows[e]);"
        return self._loop(access, [line])

    # -- what is computed ----------------------------------------------------------------------

    @property
    def _mapping(self) -> TaskMapping:
        """Threads to vectors of columns: lanes side by side, then warps, then turns."""
        high, wide = int(self.sizes.rows), int(self.sizes.columns) // self.vector
        lanes = int(self.sizes.lane_columns)
        lane_rows = WARP // lanes
        warps = self.threads // WARP
        across = min(warps, wide // lanes)
        down = warps // across
        turns = repeat(high // (lane_rows * down), wide // (lanes * across))
        return turns * spatial(down, across) * spatial(lane_rows, lanes)

    def _columns(self, at: Sequence[Index]) -> list[str]:
        """One vector of columns of each output."""
        plane = self.plane
        row, chunk = at
        column = chunk * self.vector
        return [
            *self._at(row, column),
            f"{self._within()}{{",
            f"  const {self._integer} left = {self._left(plane.columns, self.vector)};",
            *indented(self._turns(loops_inside(plane), row, column)),
            "}",
        ]

    def _turns(self, loops: Sequence[Loop], row: Index, column: Index) -> list[str]:
        """What is read and written at all turns of the loops that a block does by itself."""
        view = self.plane.view
        if loops:
            head = f"for ({self._integer} {loops[0].name} = 0; {loops[0].name} < "
            head += f"{loops[0].extent}; {loops[0].name}++) {{"
            return ["#pragma unroll", head, *indented(self._turns(loops[1:], row, column)), "}"]
        reads = [line for access in view.loaded for line in self._load(access, row, column)]
        return reads + [line for n in range(len(view.outputs)) for line in self._store(n)]

    def _load(self, access: Access, row: Index, column: Index) -> list[str]:
        plane, name, kind = self.plane, self._names[access], C_TYPES[access.array.dtype]
        how = plane.kind(access)
        if how == SAME:
            return [f"const {kind} {name} = tw::load_global({self._place(access)});"]
        declared = f"{kind} {name}[{self.vector}];"
        if how == TURNED:
            bytes = access.array.element.bytes
            places = (
                self._layout(access).index([column + i, row]) * bytes for i in range(self.vector)
            )
            return [declared] + [
                f"{name}[{i}] = tw::load_shared<{kind}>({self._shared(access)} + {place});"
                for i, place in enumerate(places)
            ]
        if how == ALONG:
            step = width(plane, access, self.vector)
            return [
                declared,
                f"tw_take<{self.vector}, {step}>({name}, {self._place(access)}, left);",
            ]
        line = f"{name}[i] = tw::load_global({self._place(access)});"
        return [declared, *self._elements("if (i < left) ", line)]

    def _elements(self, test: str, line: str) -> list[str]:
        """``line`` for each element of a vector, if the ``test`` holds; the variable of the columns
        goes along."""
        name, integer = self.plane.columns.name, self._integer
        return [
            "#pragma unroll",
            f"for (int i = 0; i < {self.vector}; i++) {{",
            f"  const {integer} first = {name};",
            f"  {{ const {integer} {name} = first + i; {test}{line} }}",
            "}",
        ]

    def _store(self, number: int) -> list[str]:
        output, value = self.plane.view.outputs[number], self.plane.view.values[number]
        kind = C_TYPES[output.array.dtype]
        step = width(self.plane, output, self.vector)
        written = f"tw::from_float<{kind}>({self._numbers.of(value)})"
        if moved := self.plane.view.moved(number):
            written = self._element(moved)
        line = f"y{number}[i] = {written};"
        return [
            f"{kind} y{number}[{self.vector}];",
            *self._elements("", line),
            f"tw_give<{self.vector}, {step}>({self._place(output)}, y{number}, left);",
        ]
