"""The transpose of a map's tiles in shared memory, swizzled against bank conflicts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Layout, row_major, swizzled
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.maps.context import MapContext
from tilewright.spaces.cuda.maps.lines import AHEAD, Lines
from tilewright.spaces.cuda.maps.sizes import width
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.kernels.body import Body


@dataclass(frozen=True)
class Transposing:
    """The transpose of a tile of each array that needs it.

    Threads read along rows, write to shared memory, and after a barrier load along columns.
    """

    context: MapContext

    def _reads(self, access: Access) -> int:
        """Return the vectors along rows that a thread reads of an array."""
        return (self.context.sizes.rows * self.context.sizes.columns) // (
            self._long(access) * self.context.sizes.threads
        )

    def _long(self, access: Access) -> int:
        """Return the elements of a vector along rows."""
        return min(self.context.sizes.vector, 16 // access.array.element.bytes)

    def _along_rows(self, access: Access) -> tuple[Index, Index]:
        """Return row and column of vector ``e`` of a thread: neighbours have neighbouring rows."""
        of_row = self.context.sizes.rows // self._long(access)
        number = index("e", self._reads(access)) * self.context.sizes.threads + index(
            "thread", self.context.sizes.threads
        )
        vector = self._lines(access).place(number % of_row, of_row)
        return vector * self._long(access), number // of_row

    def _lines(self, access: Access) -> Lines:
        assert self.context.plane.rows
        return Lines(self.context, access, self.context.plane.rows, "row0", self._long(access))

    def layout(self, access: Access) -> Layout:
        """Return the layout of a tile in shared memory, by (column, row)."""
        rows, long = self.context.sizes.rows, self._long(access)
        plain = row_major(self.context.sizes.columns, rows)
        bits = (rows // long).bit_length() - 1
        base = long.bit_length() - 1
        shift = (rows * self.context.sizes.vector // long).bit_length() - 1
        return swizzled(plain, bits, base, shift) if bits else plain

    def shared(self, access: Access) -> str:
        """Return C text of the address of an array's tile in shared memory."""
        before = self.context.plane.transposed[: self.context.plane.transposed.index(access)]
        points = self.context.sizes.rows * self.context.sizes.columns
        return f"(shared + {points * sum(a.array.element.bytes for a in before)})"

    def _each(self, body: Body, access: Access) -> AbstractContextManager[Index]:
        """Run what is written inside for each vector ``e`` that a thread moves."""
        return body.loop("int", "e", self._reads(access), unroll=True)

    def read(self, body: Body, access: Access) -> None:
        """Write how an array is read along rows, as it lies in memory, into registers."""
        context, name, long = self.context, self.context.names[access], self._long(access)
        assert context.plane.rows
        step = width(context.plane, access, long)
        left = context.left(context.plane.rows, long)
        row, column = self._along_rows(access)
        kind, count = C_TYPES[access.array.dtype], (self._reads(access), long)
        rows = body.let(kind, f"{name}_rows", count=count)
        with self._each(body, access):
            context.at_column(body, column)
            self._lines(access).ahead(body, row)
            context.at_row(body, row)
            with body.where(context.within(), brief=True):
                body.call(f"tw_take<{long}, {step}>", f"{rows}[e]", context.place(access), left)

    def write(self, body: Body, access: Access) -> None:
        """Write how the vectors that were read are written to shared memory."""
        row, column = self._along_rows(access)
        place = self.layout(access).index([column, row]) * access.array.element.bytes
        with self._each(body, access):
            if AHEAD in row.names:
                self.context.at_column(body, column)
                self._lines(access).ahead(body, row)
            to, name = f"{self.shared(access)} + {place}", self.context.names[access]
            body.call(f"tw::store_shared<{self._long(access)}>", to, f"{name}_rows[e]")

    def load(self, body: Body, access: Access, row: Index, column: Index) -> None:
        """Write how a vector of columns of the tile is loaded."""
        name, kind = self.context.names[access], C_TYPES[access.array.dtype]
        for i in range(self.context.sizes.vector):
            place = self.layout(access).index([column + i, row]) * access.array.element.bytes
            body.assign(f"{name}[{i}]", f"tw::load_shared<{kind}>({self.shared(access)} + {place})")
