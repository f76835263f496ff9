"""The C of reductions along rows: pass after pass over a row, and then its outputs.

Workers share the rows. As task mappings:

    spatial(workers) * repeat(rows of a worker)     and within a row
    repeat(spans but the last) * (repeat(tiles) * spatial(tile's columns), then the rest)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.index import Index, index
from spaces.algebra.integers import ceil_div, round_up
from spaces.algebra.mapping import repeat, spatial
from spaces.array import Array
from spaces.cpu.rows.access import RowAccess
from spaces.cpu.rows.columns import Vector, Walk
from spaces.cpu.rows.reducing import Reducing
from spaces.cpu.rows.scopes import Scope
from spaces.cpu.tiles.moves import TABLE_TYPES
from spaces.cpu.tiles.simd import C_TYPES
from spaces.derivation.rows.passes import Pass
from spaces.derivation.rows.place import Place
from spaces.derivation.rows.view import RowOutput, Rows
from spaces.language.tree import AxisValue, Expression, Read

LINE = 16
"""Floats in a cache line."""


@dataclass(frozen=True)
class Held:
    """An expression of each element that a pass stores and the outputs load again: in a worker's
    scratch row, or at ``place`` in an output."""

    value: Expression
    place: Place | None = None


@dataclass(frozen=True)
class RowsCode:
    """The kernel called ``entry``. ``operands`` are its arguments in order; ``ahead`` fetches what
    the next row reads while outputs of this one are computed."""

    rows: Rows
    operands: Sequence[Array]
    passes: tuple[Pass, ...]
    held: Held | None
    unroll: int
    streaming: bool
    ahead: bool
    workers: int
    lanes: int
    entry: str

    @property
    def source(self) -> str:
        """All functions of the kernel, the entry last."""
        run = f"{self.entry}_work(&call, 0);"
        if self.workers > 1:
            run = f"runtime->parallel(runtime->pool, {self.workers}, {self.entry}_work, &call);"
        lines = [
            *self._work(),
            f"void {self.entry}(",
            "    void *const *buffers, void *workspace, const tw_runtime *runtime) {",
            "  tw_call call = {buffers, workspace};",
            f"  {run}",
            "}",
        ]
        return "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Scratch rows of all workers."""
        return 4 * self.workers * self._held_floats

    @property
    def _held_floats(self) -> int:
        if self.held is None or self.held.place:
            return 0
        return round_up(self.rows.column_count + self.lanes, LINE)

    def _work(self) -> list[str]:
        rows = self.rows.row_count
        worker = index("worker", self.workers)
        mapping = spatial(self.workers) * repeat(ceil_div(rows, self.workers))
        flush = ["  tw_flush();"] if self.streaming else []
        return [
            f"static void {self.entry}_work(void *context, int worker) {{",
            "  const tw_call *call = context;",
            *(f"  {line}" for line in self._buffers()),
            *(f"  {line}" for line in mapping.emit(worker, self._row, extents=(rows,), prefix="r")),
            *flush,
            "}",
        ]

    def _buffers(self) -> list[str]:
        written = {output.array.name for output in self.rows.outputs}
        lines = []
        for i, operand in enumerate(self.operands):
            c_type = (TABLE_TYPES | C_TYPES)[operand.dtype]
            constant = "" if operand.name in written else "const "
            lines.append(f"{constant}{c_type} *b{i} = call->buffers[{i}];")
        if self._held_floats:
            start = index("worker", self.workers) * self._held_floats
            lines.append(f"float *held = (float *)call->workspace + {start};")
        return lines

    def _row(self, at: Sequence[Index]) -> list[str]:
        extents = [span.extent for span in self.rows.rows]
        row = index("row", self.rows.row_count)
        digits = spatial(*extents).emit(row, lambda at: RowCode(self, tuple(at)).lines())
        return [f"const long row = {at[0]};", *digits]


class RowCode:
    """The C of one row, at an index for each span of rows."""

    def __init__(self, code: RowsCode, at: tuple[Index, ...]) -> None:
        self.code, self.rows, self.at = code, code.rows, at
        self.body: list[str] = []
        self.row = Scope("g", self._row_leaf, self.body)
        buffers = {operand.name: f"b{i}" for i, operand in enumerate(code.operands)}
        self.access = RowAccess(code.rows, buffers, at, self.body)
        self.results: dict[str, str] = {}
        self.found_places: dict[str, str] = {}

    def lines(self) -> list[str]:
        """All passes, the outputs of each element, and those of the row."""
        code, stored = self.code, False
        by_element = [o for o in self.rows.outputs if o.place.by_column]
        for number, pass_ in enumerate(code.passes):
            stores = not stored and self._computes_held(pass_)
            last = not by_element and number == len(code.passes) - 1
            self._pass(number, pass_, stores, code.ahead and last)
            stored = stored or stores
        if by_element:
            self._outputs(by_element)
        for output in self.rows.outputs:
            if not output.place.by_column:
                self._row_output(output)
        return self.body

    # -- loops -------------------------------------------------------------------------------

    @cached_property
    def _walk(self) -> Walk:
        extents = tuple(span.extent for span in self.rows.columns)
        return Walk(extents, self.code.lanes, self.code.unroll)

    def _pass(self, number: int, pass_: Pass, stores: bool, ahead: bool) -> None:
        def also(vectors: Sequence[Vector], scopes: Sequence[Scope]) -> list[str]:
            lines = self._fetches(pass_, vectors) if ahead else []
            if stores:
                lines += map(self._hold, scopes, vectors)
            return lines

        reducing = Reducing(
            number,
            pass_,
            self._walk,
            self.row,
            lambda u, vector, around: self._vector_scope(u, vector, around, around.lines),
            also,
            {r.name: self.rows.ranks[r.name] for r in pass_ if r.name in self.rows.ranks},
        )
        lines = reducing.lines()
        self.body += lines
        self.results |= reducing.results()
        arguments = [r.name for r in pass_ if r.name in self.rows.ranks]
        self.found_places |= {name: reducing.place(name) for name in arguments}

    def _outputs(self, outputs: Sequence[RowOutput]) -> None:
        def tile(vectors: Sequence[Vector]) -> list[str]:
            lines: list[str] = []
            for u, vector in enumerate(vectors):
                scope = self._vector_scope(u, vector, self.row, lines, loads_held=True)
                if self.code.held:
                    scope.text(self.code.held.value)  # before an output takes its place
                for output in outputs:
                    value = scope.text(output.value)
                    streaming = self.code.streaming
                    lines.append(self.access.store(output.place, value, vector, streaming))
            return lines + (self._fetches(outputs, vectors) if self.code.ahead else [])

        lines = self._walk.lines(tile)
        self.body += lines

    def _row_output(self, output: RowOutput) -> None:
        value = output.value
        if isinstance(value, Read) and value.name in self.found_places:
            whole = self.found_places[value.name]
            self.body.append(self.access.store_whole(output.place, whole))
        else:
            self.body.append(self.access.store_one(output.place, self.row.text(value)))

    def _fetches(self, of: Pass | Sequence[RowOutput], vectors: Sequence[Vector]) -> list[str]:
        """A prefetch of each line that the elements of the next row begin with."""
        values = [item.value if isinstance(item, RowOutput) else item.element for item in of]
        reads = {read: None for value in values for read in self.rows.reads(value)}
        places = {self.rows.places[read]: None for read in reads}
        step = LINE // self.code.lanes or 1
        return [
            self.access.fetch(place, vector)
            for place in places
            if place.columns[-1] == 1 and place.rows[-1]
            for vector in vectors[::step]
            if vector.left is None
        ]

    # -- what is held ------------------------------------------------------------------------

    def _computes_held(self, pass_: Pass) -> bool:
        held = self.code.held
        return held is not None and any(held.value in set(r.element.walk()) for r in pass_)

    def _hold(self, scope: Scope, vector: Vector) -> str:
        assert self.code.held is not None
        where, value = self._held_at(vector), scope.text(self.code.held.value)
        if vector.left:
            return f"tw_store_most_float32({where}, {value}, {vector.left});"
        return f"tw_store_float32({where}, {value});"

    def _held_at(self, vector: Vector) -> str:
        assert self.code.held is not None
        place = self.code.held.place
        if place:
            return f"{self.access.pointer(place)} + {vector.offset(place.columns)}"
        extents = [span.extent for span in self.rows.columns]
        total = Index()
        for position, extent in zip(vector.columns, extents, strict=True):
            total = total * extent + position
        return f"held + {total}"

    # -- leaves ------------------------------------------------------------------------------

    def _row_leaf(self, node: Expression) -> str | None:
        if isinstance(node, AxisValue):
            side, place = self.rows.axis[node.name]
            return f"tw_set((float){self.at[place]})" if side == "rows" else None
        if isinstance(node, Read) and node in self.rows.places:
            place_ = self.rows.places[node]
            return None if place_.by_column else self.access.splat(place_)
        return self.results.get(node.name) if isinstance(node, Read) else None

    def _vector_scope(
        self, u: int, vector: Vector, around: Scope, lines: list[str], loads_held: bool = False
    ) -> Scope:
        held = self.code.held.value if self.code.held and loads_held else None

        def leaf(node: Expression) -> str | None:
            if node == held:
                if vector.left:
                    return f"tw_load_most_float32({self._held_at(vector)}, {vector.left})"
                return f"tw_load_float32({self._held_at(vector)})"
            if isinstance(node, AxisValue):
                return self._axis(node, vector)
            if isinstance(node, Read) and node in self.rows.places:
                place = self.rows.places[node]
                return self.access.load(place, vector) if place.by_column else None
            return None

        return Scope(f"x{u}_", leaf, lines, around)

    def _axis(self, node: AxisValue, vector: Vector) -> str | None:
        side, place = self.rows.axis[node.name]
        if side == "rows":
            return None
        if place == len(vector.columns) - 1:
            return f"tw_numbers(tw_ramp({vector.columns[place]}))"
        return f"tw_set((float){vector.columns[place]})"
