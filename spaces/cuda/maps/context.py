"""Names, values and sizes that all parts of a map's kernel share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cuda.abi import index_type
from tilewright.spaces.cuda.maps.sizes import MapSizes
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
    """A plane under the decisions ``values``, in a kernel that takes ``arguments``."""

    plane: Plane
    arguments: tuple[Argument, ...]
    values: Mapping[str, Value]

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

    def within(self) -> list[str]:
        """Return C tests that the plane's variables are within it; empty if all tiles are whole."""
        plane, tests = self.plane, []
        if plane.width % self.sizes.columns:
            tests.append(f"{plane.columns.name} < {plane.width}")
        if plane.rows and plane.height % self.sizes.rows:
            tests.append(f"{plane.rows.name} < {plane.height}")
        return tests

    def left(self, loop: Loop, vector: int) -> str:
        """Return C text of how many elements there are, at least, from a vector's first on."""
        return f"{loop.extent} - {loop.name}" if loop.extent % vector else str(vector)
