"""Names, values and sizes that all parts of a map's kernel share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cuda.abi import index_type, open_count
from tilewright.spaces.cuda.maps.sizes import MapSizes, shared_loops
from tilewright.spaces.cuda.maps.values import ScalarValues, are_narrow
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.plane import SAME, Plane
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.kernel import Argument
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.schedule import Value

OWN = "own"
"""The C variable of the column of one element of a vector."""


@dataclass(frozen=True)
class MapContext:
    """A plane under the decisions ``values``, in a kernel that takes ``arguments``.

    If ``turns_each`` is given, calls pass the extent of an open axis, and the slowest loop has so
    many turns at each of its points.
    """

    plane: Plane
    arguments: tuple[Argument, ...]
    values: Mapping[str, Value]
    turns_each: int | None = None

    @cached_property
    def sizes(self) -> MapSizes:
        """The tiles."""
        return MapSizes(self.plane, self.values)

    @cached_property
    def integer(self) -> str:
        """The C type of the loops' variables and of whole numbers made of them."""
        narrow = index_type(argument.array for argument in self.arguments)
        return narrow if are_narrow(self.plane.view) else "i64"

    @cached_property
    def pointers(self) -> dict[str, str]:
        """The C variables that point to operands, by the arrays' names."""
        return {a.array.name: f"x{i}" for i, a in enumerate(self.arguments)}

    @cached_property
    def names(self) -> dict[Access, str]:
        """The C variables that hold a vector of each read."""
        return {access: f"v{i}" for i, access in enumerate(self.plane.view.loaded)}

    @cached_property
    def numbers(self) -> ScalarValues:
        """Values at the point of the loops' variables."""
        return ScalarValues(self.plane.view, self.pointers, {}, self.integer)

    @cached_property
    def elements(self) -> ScalarValues:
        """Values of element ``i`` of the vectors that were read, in column :data:`OWN`."""
        view, columns = self.plane.view, self.plane.columns
        loaded = {access: f"tw::to_float({self.element(access)})" for access in view.loaded}
        own = {columns.name: variable(OWN, columns.extent)}
        return ScalarValues(view, self.pointers, loaded, self.integer, own)

    def element(self, access: Access) -> str:
        """Return C text of element ``i`` of a vector that was read."""
        return self.names[access] + ("" if self.plane.kind(access) == SAME else "[i]")

    def place(self, access: Access, numbers: ScalarValues | None = None) -> str:
        """Return C text of an access's address at the loops' variables, or at other ``numbers``."""
        offset = (numbers or self.numbers).whole(access.offset)
        return f"{self.pointers[access.array.name]} + {offset}"

    def at_column(self, body: Body, column: Index) -> None:
        """Write the variable of the loop over columns, at a column of the tile."""
        body.let(f"const {self.integer}", self.plane.columns.name, f"column0 + {column}")

    def at_row(self, body: Body, row: Index) -> None:
        """Write the variable of the loop over rows, if there is one, at a row of the tile."""
        if self.plane.rows:
            body.let(f"const {self.integer}", self.plane.rows.name, f"row0 + {row}")

    @cached_property
    def open_loop(self) -> Loop | None:
        """The loop whose turns a call gives; None if all extents are fixed."""
        return self.plane.view.loops[0] if self.turns_each else None

    @cached_property
    def open_rank(self) -> int | None:
        """The rank of the open loop among :attr:`MapSizes.counts`; None if there is none."""
        if self.open_loop is None:
            return None
        return [*shared_loops(self.plane), self.plane.rows, self.plane.columns].index(
            self.open_loop
        )

    def within(self) -> list[str]:
        """Return C tests that the plane's variables are within it; empty if all tiles are whole."""
        plane, sizes = self.plane, self.sizes
        tiled = [
            (plane.columns, sizes.columns),
            *([(plane.rows, sizes.rows)] if plane.rows else []),
        ]
        return [f"{x.name} < {self._turns(x)}" for x, tile in tiled if not self._is_whole(x, tile)]

    def left(self, loop: Loop, vector: int) -> str:
        """Return C text of how many elements there are, at least, from a vector's first on."""
        if self._is_whole(loop, vector):
            return str(vector)
        return f"{self._turns(loop)} - {loop.name}"

    def _is_whole(self, loop: Loop, tile: int) -> bool:
        """Return true if a loop has a whole number of tiles, whatever the extent of a call."""
        turns = self.turns_each if self.turns_each and loop == self.open_loop else loop.extent
        return turns % tile == 0

    def _turns(self, loop: Loop) -> str:
        """Return C text of a loop's turns in this call."""
        if self.turns_each and loop == self.open_loop:
            return open_count(self.turns_each, self.integer)
        return str(loop.extent)
