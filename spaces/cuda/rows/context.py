"""Names, extents and places that all code of one rows kernel shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cuda.abi import C_TYPES, OPEN_EXTENT, open_count
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
    """The kernel of ``rows`` under the decisions ``values``.

    If ``rows_each`` is given, calls pass the extent of an open axis, with so many rows at each of
    its points.
    """

    rows: Rows
    values: Mapping[str, Decided]
    rows_each: int | None = None

    @cached_property
    def use(self) -> Use:
        """The sweeps, and the reads that each of them needs."""
        online = self.values["passes"] == "online"
        return Use(self.rows, self.rows.online if online else self.rows.plain)

    @property
    def tile(self) -> RowTile:
        """The extents of tiles."""
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
        """Vectors of a thread in each step."""
        return int(self.tile.at_once(self.values))

    @cached_property
    def steps(self) -> int:
        """Steps of a sweep."""
        return int(self.tile.steps(self.values))

    @property
    def integer(self) -> str:
        """The C type of columns and offsets along a row: 64 bits where 32 do not suffice."""
        covered = self.rows.column_count + self.steps * self.unroll * self.turn
        places = [*self.rows.places.values(), *(o.place for o in self.rows.outputs)]
        farthest = max(covered * max(map(abs, place.columns)) for place in places)
        wide = max(covered, farthest) > LARGEST_INT
        return "i64" if wide else "int"

    # -- arrays --------------------------------------------------------------------------------

    @cached_property
    def arguments(self) -> Mapping[str, str]:
        """Names of operands and outputs in the kernel, which do not depend on the program's
        names."""
        inputs = {o.name: f"in{n}" for n, o in enumerate(self.rows.program.operands)}
        outputs = {o.name: f"out{n}" for n, o in enumerate(self.rows.program.outputs)}
        return {**inputs, **outputs}

    @property
    def parameters(self) -> str:
        """The C parameters of the kernel."""
        program = self.rows.program
        inputs = [f"const {C_TYPES[o.dtype]} *__restrict__ " for o in program.operands]
        outputs = [f"{C_TYPES[o.dtype]} *__restrict__ " for o in self.rows.written]
        names = self.arguments.values()
        given = [*map("".join, zip([*inputs, *outputs], names, strict=True))]
        given += ["u8 *__restrict__ workspace"] * bool(self.rows.summed)
        return ", ".join([*given, *[f"int {OPEN_EXTENT}"] * (self.rows_each is not None)])

    @cached_property
    def accesses(self) -> Mapping[Read, Access]:
        """The reads that differ from element to element, with their places."""
        return {read: self.access(read) for read in self.use.elements}

    @cached_property
    def beside(self) -> Sequence[Read]:
        """The reads that are the same along a row, whole numbers first.

        Whole numbers come first since they say where other arrays are read.
        """
        found = [r for r, place in self.rows.places.items() if not place.by_column]
        return sorted(found, key=lambda r: not self.is_integer(r))

    def is_integer(self, read: Read) -> bool:
        """Return true if a read is of whole numbers."""
        return self._operand(read).element.is_integer

    def access(self, read: Read) -> Access:
        """Return where a read has its elements."""
        array = self._operand(read)
        place = self.rows.places[read]
        return Access(self.rows, array, self.arguments[read.name], place, self.number("vector"))

    def _operand(self, read: Read) -> Operand:
        return self.rows.program.operand[read.name]

    def name(self, read: Read) -> int:
        """Return the number that is part of the names of a read's variables."""
        return list(self.rows.places).index(read)

    def row_of(self, read: Read) -> str:
        """Return the index, among rows at once, of a read's variable: ``k``, or ``0`` for all
        rows."""
        return "k" if self.rows.places[read].by_row else "0"

    def rows_of(self, read: Read) -> int:
        """Return the number of rows for which a read has variables of its own."""
        return self.at_once if self.rows.places[read].by_row else 1

    @cached_property
    def held(self) -> tuple[Read, ...]:
        """The reads whose elements stay on chip between sweeps.

        Elements that come through shared memory are chosen by the plain passes, even if there is
        but one sweep, for they may be copied a tile ahead.
        """
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
        """The variables of final results, by the names of reductions."""
        names = [r.name for pass_ in self.use.passes for r in pass_]
        return {name: f"f{n}" for n, name in enumerate(names)}

    @property
    def scope(self) -> Scope:
        """The scope within the loop over elements ``i`` of a vector of row ``k``."""
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
        """Return C text of the index that the reduction ``name`` (an argmax, say) gives an
        element."""
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
    def inside(self) -> str:
        """The C condition that vector ``u`` of a step lies within the row; empty if all vectors
        do."""
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
        """Elements of a thread in each step; None if threads may have different numbers."""
        uneven = self.inside or (self.values["lanes"] == "rows")
        return None if uneven else self.unroll * self.number("vector")

    @property
    def block_steps(self) -> int:
        """Steps after which a long sum starts a new block; 0 if sums are short."""
        steps = max(1, BLOCK // (self.unroll * self.number("vector")))
        return steps if steps < self.steps else 0

    @property
    def valid(self) -> str:
        """The C condition that row ``k`` is one of the problem's; empty if all rows are."""
        rows = self.rows_each or self.rows.row_count
        if rows % int(self.tile.tile_rows(self.values)) == 0:
            return ""
        return f"row0 + k * {self.number('block_rows')} < {self.row_count}"

    @property
    def row_count(self) -> str:
        """C text of the number of rows of a call."""
        return open_count(self.rows_each) if self.rows_each else str(self.rows.row_count)

    @property
    def last_row(self) -> str:
        """C text of the last row of a call."""
        return f"{self.row_count} - 1" if self.rows_each else str(self.rows.row_count - 1)

    @property
    def is_copied(self) -> bool:
        """True if elements come through shared memory."""
        return bool(self.tile.copied(self.values))

    buffers = Size(of="tile")

    # -- shared memory -------------------------------------------------------------------------

    def shared_place(self, read: Read) -> int:
        """Return the offset in bytes of a read's elements in shared memory."""
        before = self.held[: self.held.index(read)]
        return sum(self.shared_bytes_of(r) for r in before)

    def shared_bytes_of(self, read: Read) -> int:
        """Return the bytes of shared memory that a read's elements take."""
        access, turns = self.accesses[read], self.steps * self.unroll
        threads = int(self.tile.threads(self.values))
        return self.rows_of(read) * turns * threads * access.vector * access.array.element.bytes

    @property
    def held_bytes(self) -> int:
        """Bytes of shared memory for the elements of one tile."""
        if not self.is_copied:
            return 0
        return sum(map(self.shared_bytes_of, self.held))

    def shared_at(self, read: Read, turn: str, buffer: str = "buffer") -> str:
        """Return C text of the address of a thread's vector ``turn`` of row ``k``.

        If there are several buffers, it is in the one of this number.
        """
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
