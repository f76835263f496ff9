"""Transposes the tiles of a map in shared memory, swizzled against bank conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Layout, row_major, swizzled
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.maps.context import MapContext
from tilewright.spaces.cuda.maps.lines import Lines
from tilewright.spaces.cuda.maps.sizes import width
from tilewright.spaces.derivation.maps.view import Access


@dataclass(frozen=True)
class Turning:
    """The exchange of a tile of each array that turns: threads read along rows, write to shared
    memory, and after a barrier load along columns."""

    context: MapContext

    def _reads(self, access: Access) -> int:
        """Vectors along rows that a thread reads of what turns."""
        return int(self.context.sizes.rows * self.context.sizes.columns) // (
            self._long(access) * self.context.threads
        )

    def _long(self, access: Access) -> int:
        """Elements of a vector along rows."""
        return min(self.context.vector, 16 // access.array.element.bytes)

    def _along_rows(self, access: Access) -> tuple[Index, Index]:
        """Row and column of vector ``e`` of a thread: neighbours have neighbouring rows."""
        of_row = int(self.context.sizes.rows) // self._long(access)
        number = index("e", self._reads(access)) * self.context.threads + index(
            "thread", self.context.threads
        )
        vector = self._lines(access).place(number % of_row, of_row)
        return vector * self._long(access), number // of_row

    def _lines(self, access: Access) -> Lines:
        assert self.context.plane.rows
        return Lines(self.context, access, self.context.plane.rows, "row0", self._long(access))

    def layout(self, access: Access) -> Layout:
        """Where shared memory has the element of a column and a row of the tile."""
        rows, long = int(self.context.sizes.rows), self._long(access)
        plain = row_major(int(self.context.sizes.columns), rows)
        bits = (rows // long).bit_length() - 1
        base = long.bit_length() - 1
        shift = (rows * self.context.vector // long).bit_length() - 1
        return swizzled(plain, bits, base, shift) if bits else plain

    def shared(self, access: Access) -> str:
        """The address of what turns of an array."""
        before = self.context.plane.transposed[: self.context.plane.transposed.index(access)]
        points = int(self.context.sizes.rows * self.context.sizes.columns)
        return f"(shared + {points * sum(a.array.element.bytes for a in before)})"

    def _loop(self, access: Access, lines: Sequence[str]) -> list[str]:
        count = self._reads(access)
        return ["#pragma unroll", f"for (int e = 0; e < {count}; e++) {{", *indented(lines), "}"]

    def read(self, access: Access) -> list[str]:
        """Lines that read an array along rows, as it lies, into registers."""
        plane, name, long = self.context.plane, self.context.names[access], self._long(access)
        assert plane.rows
        kind = C_TYPES[access.array.dtype]
        step = width(plane, access, long)
        left = self.context.left(plane.rows, long)
        to, place = f"{name}_rows[e]", self.context.place(access)
        row, column = self._along_rows(access)
        lines = [
            self.context.at_column(column),
            *self._lines(access).ahead(),
            self.context.at_row(row),
            f"{self.context.within()}tw_take<{long}, {step}>({to}, {place}, {left});",
        ]
        return [f"{kind} {name}_rows[{self._reads(access)}][{long}];", *self._loop(access, lines)]

    def write(self, access: Access) -> list[str]:
        """Lines that write what was read to shared memory."""
        row, column = self._along_rows(access)
        place = self.layout(access).index([column, row]) * access.array.element.bytes
        to = f"{self.shared(access)} + {place}"
        line = (
            f"tw::store_shared<{self._long(access)}>({to}, {self.context.names[access]}_rows[e]);"
        )
        ahead = self._lines(access).ahead()
        found = [self.context.at_column(column), *ahead] if ahead else []
        return self._loop(access, [*found, line])

    def load(self, access: Access, row: Index, column: Index) -> list[str]:
        """Lines that load a vector of columns of the tile."""
        name, kind = self.context.names[access], C_TYPES[access.array.dtype]
        bytes = access.array.element.bytes
        places = (
            self.layout(access).index([column + i, row]) * bytes for i in range(self.context.vector)
        )
        return [
            f"{name}[{i}] = tw::load_shared<{kind}>({self.shared(access)} + {place});"
            for i, place in enumerate(places)
        ]
