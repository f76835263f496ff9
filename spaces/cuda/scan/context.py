"""Names and places of one kernel of scans: those of rows, of which registers hold a tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tilewright.spaces.algebra.index import index
from tilewright.spaces.cuda.rows.context import LARGEST_INT, Context
from tilewright.spaces.cuda.scalar_code import Value
from tilewright.spaces.cuda.scan.sizes import ScanSizes
from tilewright.spaces.derivation.scans.view import Scan
from tilewright.spaces.language.tree import Read
from tilewright.spaces.schedule import Value as Decided

HELD: Mapping[str, Decided] = {
    "row_storage": "registers",
    "convert": "once",
    "passes": "plain",
    "row_invariants": "again",
    "thread_rows": 1,
    "stages": 1,
}
"""Decisions of rows that scans do not have: registers hold the elements of one tile, of one row."""


@dataclass(frozen=True)
class ScanContext(Context):
    """The kernel of a scan under decisions ``values``, which include :data:`HELD`."""

    rows: Scan
    values: Mapping[str, Decided]
    rows_each: int | None = field(default=None, init=False)

    @cached_property
    def sizes(self) -> ScanSizes:
        """The tiles."""
        return ScanSizes(self.rows, self.values, 8 if self.real == "double" else 4)

    @cached_property
    def turn(self) -> int:
        """Columns from one vector of a thread to its next."""
        return int(self.sizes.lanes) * self.number("vector")

    @cached_property
    def unroll(self) -> int:
        """Vectors of a thread in a tile."""
        return self.number("vectors")

    @cached_property
    def steps(self) -> int:
        """Steps of a sweep: one, over a tile."""
        return 1

    @property
    def integer(self) -> str:
        """The C type of columns and offsets along a row: 64 bits where 32 do not suffice."""
        covered = self.rows.column_count + int(self.sizes.tile)
        return "i64" if covered > LARGEST_INT else super().integer

    @cached_property
    def held(self) -> tuple[Read, ...]:
        """The reads whose elements registers hold: all."""
        return self.use.elements

    @property
    def first(self) -> str:
        """C text of the column of a thread's first vector in its tile."""
        lanes, part = int(self.sizes.lanes), index("part", self.number("row_threads"))
        place = part // lanes * (lanes * self.unroll) + part % lanes
        return f"column0 + {place * self.number('vector')}"

    @property
    def inside(self) -> str:
        """The C condition that a vector lies within the row; empty if all vectors do."""
        whole = self.rows.column_count % int(self.sizes.tile) == 0
        return "" if whole else f"column < {self.rows.column_count}"

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each state, which is ``s0``, ``s1``, ... at the elements of a thread."""
        return {r.name: n for n, r in enumerate(self.rows.running)}

    def element(self, number: int) -> str:
        """Return C text of a state at element ``i`` of vector ``u``."""
        return f"s{number}[u * {self.number('vector')} + i]"

    def _read(self, read: Read) -> Value:
        if read.name in self.numbers:
            return Value(self.element(self.numbers[read.name]))
        return super()._read(read)
