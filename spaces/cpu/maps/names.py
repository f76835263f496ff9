"""The names of C variables in a map: arrays, loops, and parts of them in a tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cpu.abi import buffer_variables, open_extent
from tilewright.spaces.cpu.maps.lines import Lines
from tilewright.spaces.cpu.maps.registers import Registers
from tilewright.spaces.cpu.maps.tiling import Tiling
from tilewright.spaces.cpu.maps.values import VectorValues
from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.plane import ANYWHERE, Plane
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.schedule import Value
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class Names:
    """The C variables of a map in tiles; ``operands`` are its arguments in order.

    A tile begins at the row ``row0`` and, for each other loop, at a variable of its name. It has
    ``rows`` rows and ``columns`` columns; ``turned`` points to its transposed copies. If
    ``turns_each`` is given, calls pass the extent of an open axis, and the slowest loop has so many
    turns at each of its points.
    """

    tiling: Tiling
    operands: Sequence[Array]
    values: Mapping[str, Value]
    turns_each: int | None = None

    @property
    def plane(self) -> Plane:
        """The plane that tiles are cut from."""
        return self.tiling.plane

    @property
    def registers(self) -> Registers:
        """The vectors that hold elements."""
        return self.tiling.registers

    @property
    def lines(self) -> Lines:
        """The cache lines at which tiles part rows."""
        return Lines(self.tiling, self.values)

    # -- arrays ------------------------------------------------------------------------------

    @cached_property
    def _pointers(self) -> dict[str, str]:
        """The C variables that point to operands, by the operands' names."""
        return {operand.name: f"x{i}" for i, operand in enumerate(self.operands)}

    @cached_property
    def _tables(self) -> dict[str, tuple[str, str]]:
        return {
            o.name: (self._pointers[o.name], o.dtype)
            for o in self.operands
            if o.dtype in TABLE_TYPES
        }

    @cached_property
    def loaded(self) -> dict[Access, str]:
        """The C variables that hold a vector of each access that is loaded."""
        return {access: f"v{i}" for i, access in enumerate(self.plane.view.loaded)}

    def row(self, access: Access) -> str:
        """Return the C variable that points to an access' first column in a row."""
        if access in self.loaded:
            return f"p{self.loaded[access][1:]}"
        return f"q{self.plane.view.outputs.index(access)}"

    def transposed(self, access: Access) -> str:
        """Return the address of the transposed copy of an access for this tile."""
        return f"(turned + {self.plane.transposed.index(access) * self.tiling.transposed_elements})"

    @property
    def start(self) -> str:
        """The C variable that points to the first output."""
        return self._pointers[self.plane.view.outputs[0].array.name]

    @property
    def held(self) -> str:
        """The C type of an element in registers and in transposed copies."""
        return self.registers.c_type(self.registers.held)

    def c_type(self, access: Access) -> str:
        """Return the C type of an access' elements in memory."""
        return self.registers.c_type(access.array.dtype)

    def dtype(self, access: Access) -> str:
        """Return the name by which C functions call the type of an access."""
        return self.registers.dtype(access.array.dtype)

    def vectors(self, left: str) -> VectorValues:
        """Return the writer of expressions for ``left`` columns from ``j`` on."""
        column = f"{self.plane.columns.name} + j"
        return VectorValues(self.plane, column, left, self._tables, self.loaded)

    def place(self, access: Access) -> str:
        """Return the address of an access in a row, at the tile's first column."""
        offset = access.offset
        if self.plane.kind(access) == ANYWHERE:
            offset = offset - offset.part([self.plane.columns.name])
        return f"{self._pointers[access.array.name]} + {self.vectors('').scalar(offset)}"

    # -- loops -------------------------------------------------------------------------------

    def is_open(self, loop: Loop | None) -> bool:
        """Tell whether calls give the extent of a loop."""
        return self.turns_each is not None and loop == self.plane.view.loops[0]

    def extent(self, loop: Loop | None) -> str:
        """Return the turns of a loop as a C expression; one turn if there is no loop."""
        if self.is_open(loop):
            return f"{open_extent(self.operands)} * {self.turns_each}"
        return str(loop.extent if loop else 1)

    def divides(self, number: int, loop: Loop | None) -> bool:
        """Tell whether a number divides the turns of a loop, whatever a call gives."""
        turns = self.turns_each if self.is_open(loop) else loop.extent if loop else 1
        return turns is not None and turns % number == 0

    # -- a tile ------------------------------------------------------------------------------

    @property
    def starts(self) -> tuple[str, ...]:
        """The C variables of the indices at which a tile begins: its first row, the outer loops,
        its first column."""
        loops = (*self.plane.outer, self.plane.columns)
        return ("row0", *(loop.name for loop in loops))

    def at_row(self, row: str) -> list[str]:
        """Declare the C variable of the index of the loop of rows."""
        return [f"const long {self.plane.rows.name} = {row};"] if self.plane.rows else []

    @property
    def sizes(self) -> list[str]:
        """The declarations of the :attr:`buffers`, and of the ``rows`` and ``columns`` of the tile
        that begins at the :attr:`starts`."""
        plane, reach = self.plane, self.lines.reach(self.start)
        height, width = self.extent(plane.rows), self.extent(plane.columns)
        return [
            *self.buffers,
            f"const long rows = tw_least({height} - row0, {self.tiling.tile_rows});",
            f"const long columns = tw_least({width} - {plane.columns.name}, {reach});",
        ]

    @property
    def buffers(self) -> list[str]:
        """The declarations of pointers to all arrays that are moved, and to tables."""
        written = {output.array.name for output in self.plane.view.outputs}
        arrays = [a.array.name for a in (*self.plane.view.loaded, *self.plane.view.outputs)]
        types = {o.name: self.registers.c_type(o.dtype) for o in self.operands if o.name in arrays}
        return buffer_variables(self.operands, self._pointers, written, types=types)
