"""The C of a map: tiles of a plane, row by row, with what turns transposed ahead of each.

A tile is so small that what is transposed for it stays near the core: blocks of as many rows and
columns as a vector has lanes go through registers. As task mappings, outermost first:

    workers along one rank * repeat(outer loops, row tiles, column tiles) * tile

Within a tile, every row is walked by whole vectors, and outputs are written where they lie, past
the caches if that is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.index import Index
from spaces.algebra.integers import ceil_div
from spaces.algebra.mapping import repeat, spatial
from spaces.algebra.mapping_emit import indented
from spaces.cpu.abi import buffer_variables
from spaces.cpu.maps.lines import Lines
from spaces.cpu.maps.registers import Registers
from spaces.cpu.maps.sharing import Sharing
from spaces.cpu.maps.straight import StraightBlocks
from spaces.cpu.maps.tiling import Tiling
from spaces.cpu.maps.values import VectorValues
from spaces.cpu.vectors.moves import TABLE_TYPES
from spaces.derivation.maps.plane import ALONG, ANYWHERE, SAME, TURNED, Plane
from spaces.derivation.maps.view import Access
from spaces.schedule import Value
from spaces.workloads.array import Array


@dataclass(frozen=True)
class MapCode:
    """The kernel called ``entry`` of a map in tiles, whose arguments are ``operands``."""

    tiling: Tiling
    operands: Sequence[Array]
    values: Mapping[str, Value]
    entry: str

    @property
    def source(self) -> str:
        """All functions of the kernel, the entry last."""
        sharing = Sharing(self.tiling, self.values, self.entry, self._held)
        return "\n".join([*self._tile(), *sharing.lines]) + "\n"

    @property
    def plane(self) -> Plane:
        """What tiles are cut from."""
        return self.tiling.plane

    @property
    def registers(self) -> Registers:
        """What vectors hold."""
        return self.tiling.registers

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.registers.lanes

    @property
    def lines(self) -> Lines:
        """Where tiles part rows."""
        return Lines(self.tiling, self.values)

    # -- names -------------------------------------------------------------------------------

    @cached_property
    def _pointers(self) -> dict[str, str]:
        """C variables that point to operands, by the operands' names."""
        return {operand.name: f"x{i}" for i, operand in enumerate(self.operands)}

    @cached_property
    def _tables(self) -> dict[str, tuple[str, str]]:
        return {
            o.name: (self._pointers[o.name], o.dtype)
            for o in self.operands
            if o.dtype in TABLE_TYPES
        }

    @cached_property
    def _loaded(self) -> dict[Access, str]:
        """C variables that hold a vector of what is read."""
        return {access: f"v{i}" for i, access in enumerate(self.plane.view.loaded)}

    def _row(self, access: Access) -> str:
        """The C variable that points to an access' first column in a row."""
        if access in self._loaded:
            return f"p{self._loaded[access][1:]}"
        return f"q{self.plane.view.outputs.index(access)}"

    def _turned(self, access: Access) -> str:
        """What was transposed of an access for this tile."""
        return f"(turned + {self.plane.turned.index(access) * self.tiling.turned_elements})"

    @property
    def _held(self) -> str:
        """The C type of an element in registers and of what was transposed."""
        return self.registers.c_type(self.registers.held)

    def _c_type(self, access: Access) -> str:
        return self.registers.c_type(access.array.dtype)

    def _dtype(self, access: Access) -> str:
        return self.registers.dtype(access.array.dtype)

    def _values(self, left: str) -> VectorValues:
        column = f"{self.plane.columns.name} + j"
        return VectorValues(self.plane, column, left, self._tables, self._loaded)

    # -- a tile ------------------------------------------------------------------------------

    def _tile(self) -> list[str]:
        """C function ``ENTRY_tile(call, turned, row0, a0, ...)``: the tile that begins there."""
        plane, tiling = self.plane, self.tiling
        height = f"tw_least({plane.height} - row0, {tiling.tile_rows})"
        reach = self.lines.reach(self._pointers[plane.view.outputs[0].array.name])
        width = f"tw_least({plane.width} - {plane.columns.name}, {reach})"
        starts = "".join(f", long {loop.name}" for loop in (*plane.outer, plane.columns))
        return [
            f"static __attribute__((noinline)) void {self.entry}_tile(",
            f"    const tw_call *call, {self._held} *restrict turned, long row0{starts}) {{",
            *indented(self._buffers()),
            f"  const long rows = {height};",
            f"  const long columns = {width};",
            *indented(
                self._blocks() if tiling.straight else [*self._turned_blocks(), *self._rows()]
            ),
            "}",
        ]

    def _turned_blocks(self) -> list[str]:
        return [line for access in self.plane.turned for line in self._turn(access)]

    def _blocks(self) -> list[str]:
        """All blocks of the tile, from where they lie to where they are wanted."""
        (access,), (output,) = self.plane.turned, self.plane.view.outputs
        side = self.registers.side
        blocks = StraightBlocks(
            side=side,
            dtype=self._dtype(access),
            read_step=self.plane.column_step(access) or 0,
            written_step=self.plane.row_step(output) or 0,
            skew=int(self.values["skew"]),
            fits=self.plane.height % side == self.plane.width % side == 0,
        )
        return [
            *self._at_row("row0"),
            f"const {self._c_type(access)} *from = {self._place(access)};",
            f"{self._c_type(output)} *to = {self._place(output)};",
            *blocks.lines(int(self.tiling.tile_rows)),
        ]

    def _buffers(self) -> list[str]:
        written = {output.array.name for output in self.plane.view.outputs}
        arrays = [a.array.name for a in (*self.plane.view.loaded, *self.plane.view.outputs)]
        types = {o.name: self.registers.c_type(o.dtype) for o in self.operands if o.name in arrays}
        return buffer_variables(self.operands, self._pointers, written, types=types)

    def _at_row(self, row: str) -> list[str]:
        """The C variable that says what the loop of rows is at."""
        return [f"const long {self.plane.rows.name} = {row};"] if self.plane.rows else []

    def _turn(self, access: Access) -> list[str]:
        """Transposes what a tile needs of an array, in blocks of whole vectors."""
        tiling, side = self.tiling, self.registers.side
        step = self.plane.column_step(access)
        assert step is not None
        dtype, pitch = self._dtype(access), tiling.pitch

        def block(start: Sequence[Index]) -> list[str]:
            j, i = start
            place = f"from + {(j * step + i).text}"
            call = f"{place}, {step}, columns - {j}, rows - {i}, to + {(i * pitch + j).text}"
            return [f"tw_turn_{dtype}({call}, {pitch});"]

        counts = (ceil_div(self.lines.most, side), ceil_div(tiling.tile_rows, side))
        blocks = repeat(*counts) * spatial(side, side)
        return [
            "{",
            *indented(self._at_row("row0")),
            f"  const {self._c_type(access)} *from = {self._place(access)};",
            f"  {self._held} *to = {self._turned(access)};",
            *indented(blocks.emit(0, block, extents=("columns", "rows"), prefix="b")),
            "}",
        ]

    def _rows(self) -> list[str]:
        """All rows of the tile, each by whole vectors and what is left of one."""
        tile = repeat(self.tiling.tile_rows)
        return tile.emit(0, self._one_row, extents=("rows",), prefix="r")

    def _one_row(self, at: Sequence[Index]) -> list[str]:
        (i,) = at
        view, lanes = self.plane.view, self.lanes
        lines = self._at_row(f"row0 + {i}")
        lines += [line for access in view.loaded for line in self._start(access, i)]
        for access in self.plane.turned if self.values["ahead"] else ():
            lines += self.lines.fetch(access, self._place(access), i)
        for output in view.outputs:
            lines.append(f"{self._c_type(output)} *{self._row(output)} = {self._place(output)};")
        return [
            *lines,
            *self.lines.span(self._row(view.outputs[0])),
            *(self._to_a_line() if self.values["stream"] else []),
            f"#pragma GCC unroll {self.values['unroll']}",
            f"for (; j + {lanes} <= end; j += {lanes}) {{",
            *indented(self._vector(whole=True)),
            "}",
            "if (j < end) {",
            "  const long left = end - j;",
            *indented(self._vector(whole=False)),
            "}",
        ]

    def _to_a_line(self) -> list[str]:
        """The columns in front of a row's first line."""
        return [
            "for (long left; j < tw_least(skew, end); j += left) {",
            f"  left = tw_least(tw_least(skew, end) - j, {self.lanes - 1});",
            *indented(self._vector(whole=False)),
            "}",
        ]

    def _place(self, access: Access) -> str:
        """Where an access is in a row, at the tile's first column."""
        values, offset = self._values(""), access.offset
        if self.plane.kind(access) == ANYWHERE:
            offset = offset - offset.part([self.plane.columns.name])
        return f"{self._pointers[access.array.name]} + {values.scalar(offset)}"

    def _start(self, access: Access, row: Index) -> list[str]:
        """What is known of an access before the vectors of a row."""
        name = self._loaded[access]
        match self.plane.kind(access):
            case kind if kind == TURNED:
                place = f"{self._turned(access)} + {(row * self.tiling.pitch).text}"
                return [f"const {self._held} *{self._row(access)} = {place};"]
            case kind if kind == SAME:
                splat = f"tw_splat_{self._dtype(access)}({self._place(access)})"
                return [f"const {self.registers.vector} {name} = {splat};"]
        return [f"const {self._c_type(access)} *{self._row(access)} = {self._place(access)};"]

    def _vector(self, whole: bool) -> list[str]:
        """One vector of each output; if not a ``whole`` one, the row's last columns."""
        view = self.plane.view
        left = str(self.lanes) if whole else "left"
        values = self._values(left)
        lines: list[str] = []
        for access in view.loaded:
            if self.plane.kind(access) != SAME:
                load = self._load(access, values, whole)
                lines.append(f"const {self.registers.vector} {self._loaded[access]} = {load};")
        for output, value in zip(view.outputs, view.values, strict=True):
            lines.append(self._store(output, values.of(value), whole))
        return lines

    def _load(self, access: Access, values: VectorValues, whole: bool) -> str:
        pointer, dtype = self._row(access), self._dtype(access)
        match self.plane.kind(access):
            case kind if kind == TURNED:
                return f"tw_load_{self.registers.held}({pointer} + j)"
            case kind if kind == ALONG:
                first = "" if whole else "first_"
                rest = "" if whole else ", left"
                return f"tw_load_{first}{dtype}({pointer} + j{rest})"
            case kind if kind == ANYWHERE:
                offsets = values.lanes(access.offset.part([self.plane.columns.name]))
                return f"tw_scattered_{dtype}({pointer}, {offsets}, {values.left})"
        step = self.plane.column_step(access)
        return f"tw_gather_{dtype}({pointer} + {step} * j, {step}, {values.left})"

    def _store(self, output: Access, value: str, whole: bool) -> str:
        dtype, place = self._dtype(output), f"{self._row(output)} + j"
        if not whole:
            return f"tw_store_first_{dtype}({place}, {value}, left);"
        way = "stream" if self.values["stream"] else "store"
        return f"tw_{way}_{dtype}({place}, {value});"

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory of all workers."""
        return int(self.values["workers"]) * int(self.tiling.scratch_bytes)
