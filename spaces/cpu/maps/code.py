"""The C of a map: tiles of a plane, row by row, with transposed copies of what runs across the
rows.

A tile is so small that its transposed copies stay near the core; blocks of as many rows and columns
as a vector has lanes are transposed in registers. As task mappings, the outermost first:

    workers along one rank * repeat(outer loops, row tiles, column tiles) * tile

Within a tile, each row is walked in whole vectors, and outputs are written in place, past the
caches if that is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.maps.names import Names
from tilewright.spaces.cpu.maps.registers import Registers
from tilewright.spaces.cpu.maps.sharing import Sharing
from tilewright.spaces.cpu.maps.straight import StraightBlocks
from tilewright.spaces.cpu.maps.tiling import Tiling
from tilewright.spaces.cpu.maps.transposed import TransposedBlocks
from tilewright.spaces.cpu.maps.values import VectorValues
from tilewright.spaces.derivation.maps.plane import ALONG, ANYWHERE, SAME, TRANSPOSED, Plane
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.schedule import Value
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class MapCode:
    """The kernel called ``entry`` of a map in tiles; ``operands`` are its arguments in order.

    If ``turns_each`` is given, calls pass the extent of an open axis, and the slowest loop has so
    many turns at each of its points.
    """

    tiling: Tiling
    operands: Sequence[Array]
    values: Mapping[str, Value]
    entry: str
    turns_each: int | None = None

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        sharing = Sharing(self.names, self.entry)
        tile = self._tile_and_next() if self.tiling.transposes_ahead else self._tile()
        part = [] if self.tiling.straight else self._part_function()
        return "\n".join([*part, *tile, *sharing.lines]) + "\n"

    @property
    def names(self) -> Names:
        """The names of the C variables."""
        return Names(self.tiling, self.operands, self.values, self.turns_each)

    @property
    def plane(self) -> Plane:
        """The plane that tiles are cut from."""
        return self.tiling.plane

    @property
    def registers(self) -> Registers:
        """The vectors that hold elements."""
        return self.tiling.registers

    @property
    def _transposed(self) -> TransposedBlocks:
        return TransposedBlocks(self.names, self.entry)

    # -- a tile ------------------------------------------------------------------------------

    def _tile(self) -> list[str]:
        """Return the C function ``ENTRY_tile(call, turned, row0, a0, ...)``, which writes the tile
        that begins at the given indices."""
        names = self.names
        starts = "".join(f", long {name}" for name in names.starts)
        moved = (
            self._blocks() if self.tiling.straight else [*self._transposed.at_once(), *self._rows()]
        )
        return [
            f"static __attribute__((noinline)) void {self.entry}_tile(",
            f"    const tw_call *call, {names.held} *restrict turned{starts}) {{",
            *indented(names.sizes),
            *indented(moved),
            "}",
        ]

    def _tile_and_next(self) -> list[str]:
        """Return the C function ``ENTRY_tile(call, turned, at, ahead, next)``, which writes one
        tile and transposes for the next one.

        The first tile begins at the indices ``at``, and ``turned`` has its transposed copies; those
        of the tile at ``next`` are written to ``ahead``. Either pointer to indices may be null.
        """
        names = self.names
        starts = [f"{name} = at[{i}]" for i, name in enumerate(names.starts)]
        return [
            *self._transposed.function(),
            f"static __attribute__((noinline)) void {self.entry}_tile(",
            f"    const tw_call *call, const {names.held} *turned, const long *at,",
            f"    {names.held} *restrict ahead, const long *next) {{",
            "  long block = 0;",
            "  if (at) {",
            f"    const long {', '.join(starts)};",
            *indented(indented([*names.sizes, *self._rows()])),
            "  }",
            *indented(self._transposed.remaining()),
            "}",
        ]

    def _blocks(self) -> list[str]:
        """Write the loops that transpose all blocks of the tile straight to the output."""
        (access,), (output,) = self.plane.transposed, self.plane.view.outputs
        names, side = self.names, self.registers.side
        blocks = StraightBlocks(
            side=side,
            dtype=names.dtype(access),
            read_step=self.plane.column_step(access) or 0,
            written_step=self.plane.row_step(output) or 0,
            strips=int(self.values["strips"]),
            skew=int(self.values["skew"]),
            ahead=bool(self.tiling.asks),
            fits=all(names.divides(side, x) for x in (self.plane.rows, self.plane.columns)),
        )
        return [
            *names.at_row("row0"),
            f"const {names.c_type(access)} *from = {names.place(access)};",
            f"{names.c_type(output)} *to = {names.place(output)};",
            *blocks.lines(int(self.tiling.tile_rows)),
        ]

    def _rows(self) -> list[str]:
        """Write a loop over the tile's rows, each in whole vectors and a part of one."""
        tile = repeat(self.tiling.tile_rows)
        return tile.emit(0, self._one_row, extents=("rows",), prefix="r")

    def _one_row(self, at: Sequence[Index]) -> list[str]:
        (i,) = at
        view, lanes, names = self.plane.view, self.registers.lanes, self.names
        lines = self._transposed.share(i) if self.tiling.transposes_ahead else []
        lines += names.at_row(f"row0 + {i}")
        lines += [line for access in view.loaded for line in self._start(access, i)]
        for access in self.plane.transposed if self.tiling.asks else ():
            lines += self.names.lines.fetch(access, names.place(access), i)
        for output in view.outputs:
            lines.append(f"{names.c_type(output)} *{names.row(output)} = {names.place(output)};")
        return [
            *lines,
            *self.names.lines.span(names.start, names.row(view.outputs[0])),
            *(self._to_a_line() if self.values["streaming_stores"] else []),
            f"#pragma GCC unroll {self.values['unroll']}",
            f"for (; j + {lanes} <= end; j += {lanes}) {{",
            *indented(self._vector(whole=True)),
            "}",
            "if (j < end) {",
            f"  const long left = end - j; {self._part()}",
            "}",
        ]

    def _to_a_line(self) -> list[str]:
        """Write the columns in front of a row's first whole cache line."""
        return [
            "for (long left; j < tw_least(skew, end); j += left) {",
            f"  left = tw_least(tw_least(skew, end) - j, {self.registers.lanes - 1}); "
            f"{self._part()}",
            "}",
        ]

    def _part(self) -> str:
        """Return the C statement that writes ``left`` columns from ``j`` on."""
        given = ", ".join(name for _, name in self._given)
        return f"{self.entry}_part(call, {given});"

    def _part_function(self) -> list[str]:
        """Return the C function ``ENTRY_part(call, ...)``, which writes fewer columns than a vector
        has.

        If there are hardly ever any, compilers are told to keep it out of the loop over rows, whose
        registers it would take.
        """
        way = "noinline, cold" if self.names.lines.are_whole else "always_inline"
        given = ", ".join(f"{kind}{name}" for kind, name in self._given)
        return [
            f"static {'' if self.names.lines.are_whole else 'inline '}__attribute__(({way}))",
            f"void {self.entry}_part(const tw_call *call, {given}) {{",
            *indented([*self.names.buffers, *self._vector(whole=False)]),
            "}",
        ]

    @property
    def _given(self) -> list[tuple[str, str]]:
        """The C types and names of the variables that the part of a row is computed from."""
        names, view = self.names, self.plane.view
        given = []
        for access in view.loaded:
            if self.plane.kind(access) == SAME:
                given.append((f"{self.registers.vector} ", names.loaded[access]))
            else:
                held = self.plane.kind(access) == TRANSPOSED
                kind = names.held if held else names.c_type(access)
                given.append((f"const {kind} *", names.row(access)))
        given += [(f"{names.c_type(output)} *", names.row(output)) for output in view.outputs]
        loops = (loop.name for loop in self.plane.loops)
        return [*given, *(("long ", name) for name in (*loops, "j", "left"))]

    def _start(self, access: Access, row: Index) -> list[str]:
        """Declare what is known of an access before the vectors of a row: a pointer, or a vector of
        the value that is the same for the row."""
        name = self.names.loaded[access]
        match self.plane.kind(access):
            case kind if kind == TRANSPOSED:
                place = f"{self.names.transposed(access)} + {(row * self.tiling.pitch).text}"
                return [f"const {self.names.held} *{self.names.row(access)} = {place};"]
            case kind if kind == SAME:
                splat = f"tw_splat_{self.names.dtype(access)}({self.names.place(access)})"
                return [f"const {self.registers.vector} {name} = {splat};"]
        pointer = f"{self.names.c_type(access)} *{self.names.row(access)}"
        return [f"const {pointer} = {self.names.place(access)};"]

    def _vector(self, whole: bool) -> list[str]:
        """Write one vector of each output: a ``whole`` one, or the last columns of the row."""
        view = self.plane.view
        left = str(self.registers.lanes) if whole else "left"
        values = self.names.vectors(left)
        lines: list[str] = []
        for access in view.loaded:
            if self.plane.kind(access) != SAME:
                load = self._load(access, values, whole)
                lines.append(f"const {self.registers.vector} {self.names.loaded[access]} = {load};")
        for output, value in zip(view.outputs, view.values, strict=True):
            lines.append(self._store(output, values.of(value), whole))
        return lines

    def _load(self, access: Access, values: VectorValues, whole: bool) -> str:
        pointer, dtype = self.names.row(access), self.names.dtype(access)
        match self.plane.kind(access):
            case kind if kind == TRANSPOSED:
                return f"tw_load_{self.registers.held}({pointer} + j)"
            case kind if kind == ALONG:
                first = "" if whole else "first_"
                rest = "" if whole else ", left"
                return f"tw_load_{first}{dtype}({pointer} + j{rest})"
            case kind if kind == ANYWHERE:
                width, offsets = values.offsets(access.offset.part([self.plane.columns.name]))
                return f"tw_scattered{width}_{dtype}({pointer}, {offsets}, {values.left})"
        step = self.plane.column_step(access)
        return f"tw_gather_{dtype}({pointer} + {step} * j, {step}, {values.left})"

    def _store(self, output: Access, value: str, whole: bool) -> str:
        dtype, place = self.names.dtype(output), f"{self.names.row(output)} + j"
        if not whole:
            return f"tw_store_first_{dtype}({place}, {value}, left);"
        way = "stream" if self.values["streaming_stores"] else "store"
        return f"tw_{way}_{dtype}({place}, {value});"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the scratch memory of all workers."""
        return int(self.values["workers"]) * int(self.tiling.scratch_bytes)
