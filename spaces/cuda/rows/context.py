"""What the lines of one rows kernel are written from: names, extents, and where elements are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cuda.block_sums import BLOCK
from tilewright.spaces.cuda.plan import Number, Plan, Size
from tilewright.spaces.cuda.rows.source import Access, digits
from tilewright.spaces.cuda.rows.tile import RowTile
from tilewright.spaces.cuda.rows.values import Scope, computed_in
from tilewright.spaces.cuda.scalar_code import Value
from tilewright.spaces.derivation.rows.use import Use
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.program import Operand
from tilewright.spaces.language.tree import Read
from tilewright.spaces.schedule import Value as Decided

LARGEST_INT = 2**31 - 1


@dataclass(frozen=True)
class Context(Plan):
    """The kernel of ``rows`` under the decisions ``values``."""

    rows: Rows
    values: Mapping[str, Decided]

    @cached_property
    def use(self) -> Use:
        """What is read when."""
        online = self.values["passes"] == "online"
        return Use(self.rows, self.rows.online if online else self.rows.plain)

    @property
    def tile(self) -> RowTile:
        """Extents."""
        return RowTile(self.rows)

    @property
    def real(self) -> str:
        """The C type that is computed in."""
        return computed_in(self.rows.program)

    at_once = Number("thread_rows")
    """Rows that a thread has at once."""

    @cached_property
    def turn(self) -> int:
        """Columns from one vector of a thread to its next."""
        return int(self.tile.turn(self.values))

    @cached_property
    def unroll(self) -> int:
        """Vectors of a step."""
        return int(self.tile.at_once(self.values))

    @cached_property
    def steps(self) -> int:
        """Steps of a sweep."""
        return int(self.tile.steps(self.values))

    @property
    def integer(self) -> str:
        """The C type of columns."""
        covered = self.rows.column_count + self.steps * self.unroll * self.turn
        places = [*self.rows.places.values(), *(o.place for o in self.rows.outputs)]
        farthest = max(covered * max(map(abs, place.columns)) for place in places)
        wide = max(covered, farthest) > LARGEST_INT
        return "i64" if wide else "int"

    # -- arrays --------------------------------------------------------------------------------

    @cached_property
    def arguments(self) -> Mapping[str, str]:
        """Names of operands and outputs in the kernel, which do not depend on the program's."""
        inputs = {o.name: f"in{n}" for n, o in enumerate(self.rows.program.operands)}
        outputs = {o.name: f"out{n}" for n, o in enumerate(self.rows.program.outputs)}
        return {**inputs, **outputs}

    @cached_property
    def accesses(self) -> Mapping[Read, Access]:
        """The reads that differ from element to element."""
        return {read: self.access(read) for read in self.use.elements}

    @cached_property
    def beside(self) -> Sequence[Read]:
        """The reads that are the same along a row, whole numbers first: they say where others
        are."""
        found = [r for r, place in self.rows.places.items() if not place.by_column]
        return sorted(found, key=lambda r: not self.is_integer(r))

    def is_integer(self, read: Read) -> bool:
        """Whether a read gives whole numbers."""
        return self._operand(read).element.is_integer

    def access(self, read: Read) -> Access:
        """Where a read has its elements."""
        array = self._operand(read)
        place = self.rows.places[read]
        return Access(self.rows, array, self.arguments[read.name], place, self.number("vector"))

    def _operand(self, read: Read) -> Operand:
        return self.rows.program.operand[read.name]

    def name(self, read: Read) -> int:
        """The number that variables of a read have."""
        return list(self.rows.places).index(read)

    def row_of(self, read: Read) -> str:
        """Which of the rows at once a variable of the read is of."""
        return "k" if self.rows.places[read].by_row else "0"

    def rows_of(self, read: Read) -> int:
        """For how many rows there is a variable of the read."""
        return self.at_once if self.rows.places[read].by_row else 1

    @cached_property
    def held(self) -> tuple[Read, ...]:
        """The reads whose elements stay between sweeps; those that come by shared memory by the
        plain passes, as they may come ahead of a single sweep, too."""
        if self.values["row_storage"] == "memory":
            return ()
        found = self.use.elements if self.values["prefetch"] else self.use.repeated
        if self.is_copied:
            found = Use(self.rows, self.rows.plain).repeated
        return tuple(read for read in found if read not in self.common)

    @cached_property
    def common(self) -> tuple[Read, ...]:
        """The reads that are the same for all rows and stay in registers for all tiles."""
        if self.values["row_invariants"] == "again":
            return ()
        return tuple(r for r in self.use.elements if not self.rows.places[r].by_row)

    # -- expressions ---------------------------------------------------------------------------

    @cached_property
    def results(self) -> Mapping[str, str]:
        """Variables of final results, by the names of reductions."""
        names = [r.name for pass_ in self.use.passes for r in pass_]
        return {name: f"f{n}" for n, name in enumerate(names)}

    @property
    def scope(self) -> Scope:
        """How leaves are written within the loop over elements ``i`` of a vector of row ``k``."""
        known = magnitudes(self.rows.program)
        return Scope(self.real, self._read, self._axis, known, self._is_real)

    def _read(self, read: Read) -> Value:
        if read in self.accesses or read in self.rows.places:
            name = f"v{self.name(read)}[i]" if read in self.accesses else f"r{self.name(read)}[k]"
            whole = self._operand(read).element.is_integer
            return Value(f"(i64){name}" if whole else name, whole=whole)
        result = f"{self.results[read.name]}[k]"
        reducer = self.rows.program.stage[read.name].reducer if self._is_stage(read) else None
        return Value(f"(i64){result}", whole=True) if _is_place(reducer) else Value(result)

    def _is_real(self, read: Read) -> bool:
        return read in self.rows.places and not self._operand(read).element.is_integer

    def _is_stage(self, read: Read) -> bool:
        return read.name in self.rows.program.stage

    def _axis(self, name: str) -> Value:
        side, place = self.rows.axis.get(name, ("", 0))
        if side == "rows":
            found = digits("row[k]", self.rows.rows)[place]
        else:
            found = digits("(column + i)", self.rows.columns)[place]
        return Value(f"(i64){found}", whole=True)

    def rank(self, name: str) -> str:
        """The place of the element that ``argmax`` would give."""
        steps = self.rows.ranks.get(name)
        if steps is None:
            return "0"
        found = Index()
        parts = digits("(column + i)", self.rows.columns)
        for digit, step in zip(parts, steps, strict=True):
            found = found + digit * step
        return found.text

    # -- columns -------------------------------------------------------------------------------

    @property
    def first(self) -> str:
        """C text of the column of a thread's first vector in ``step``."""
        vector, parts = self.number("vector"), self.turn // self.number("vector")
        step = f"step * {self.unroll * parts} + " if self.steps > 1 else ""
        text = f"({step}part) * {vector}"
        return f"column0 + {text}" if self.rows.is_map else text

    @property
    def outside(self) -> str:
        """C text of whether vector ``u`` of a step is within the row; empty if all are."""
        columns = self.rows.column_count
        covered = self.steps * self.unroll * self.turn
        if self.rows.is_map:
            return f"column < {columns}" if columns % covered else ""
        if covered == columns:
            return ""
        full = columns // self.turn
        test = f"column < {columns}"
        return f"u < {full} || {test}" if self.steps == 1 and full else test

    @property
    def elements(self) -> int | None:
        """Elements of a thread in each step, if all have as many."""
        uneven = self.outside or (self.values["lanes"] == "rows")
        return None if uneven else self.unroll * self.number("vector")

    @property
    def block_steps(self) -> int:
        """Steps in which a thread has as many elements as are added up at once; 0 if all are."""
        steps = max(1, BLOCK // (self.unroll * self.number("vector")))
        return steps if steps < self.steps else 0

    @property
    def valid(self) -> str:
        """C text of whether row ``k`` is within the problem; empty if all are."""
        rows = self.rows.row_count
        if rows % int(self.tile.tile_rows(self.values)) == 0:
            return ""
        return f"row0 + k * {self.number('block_rows')} < {rows}"

    @property
    def is_copied(self) -> bool:
        """Whether elements come by shared memory."""
        return bool(self.tile.copied(self.values))

    buffers = Size(of="tile")

    # -- shared memory -------------------------------------------------------------------------

    def shared_place(self, read: Read) -> int:
        """Where elements of a read begin that shared memory holds."""
        before = self.held[: self.held.index(read)]
        return sum(self.shared_bytes_of(r) for r in before)

    def shared_bytes_of(self, read: Read) -> int:
        """Shared memory for the elements of a read."""
        access, turns = self.accesses[read], self.steps * self.unroll
        threads = int(self.tile.threads(self.values))
        return self.rows_of(read) * turns * threads * access.vector * access.array.element.bytes

    @property
    def held_bytes(self) -> int:
        """Shared memory for a tile's elements that come by it."""
        if not self.is_copied:
            return 0
        return sum(map(self.shared_bytes_of, self.held))

    def shared_at(self, read: Read, turn: str, buffer: str = "buffer") -> str:
        """C text of where a thread has a vector of row ``k`` in shared memory; of many buffers, in
        that of this number."""
        access = self.accesses[read]
        size = access.vector * access.array.element.bytes
        threads = int(self.tile.threads(self.values))
        turns = self.steps * self.unroll
        row = f"{self.row_of(read)} * {turns} + " if self.row_of(read) == "k" else ""
        place = self.shared_place(read)
        stage = f" + {buffer} * {self.held_bytes}" if self.buffers > 1 else ""
        return f"shared + {place}{stage} + (({row}{turn}) * {threads} + (int)threadIdx.x) * {size}"


def _is_place(reducer: str | None) -> bool:
    return reducer is not None and REDUCERS[reducer].argument
