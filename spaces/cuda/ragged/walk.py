"""The walk of teams that share rows and entries, and how the parts of rows are joined.

All entries and the ends of rows are one list, in which each row's end follows its entries; teams
have equally many of them. A team reads entries several at a time, whatever rows they belong to, and
gives a row where it ends. Of the first row, if another team began it, and of the last one, if
another team ends it, the team leaves a part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cuda.ragged.reads import Lane, Reads, width
from tilewright.spaces.cuda.ragged.row import Part, RowCode, Turn
from tilewright.spaces.cuda.ragged.sizes import RaggedSizes
from tilewright.spaces.cuda.reducers import joined
from tilewright.spaces.cuda.scalar_code import literal
from tilewright.spaces.derivation.ragged.view import RaggedView, Step
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.language.functions import REDUCERS

PARTS_AT_ONCE = 4
"""Parts of a row that a thread reads at a time."""
SEARCH = """\
template <class T> TW_INLINE int tw_rows_before(const T *starts, int rows, int entries, int items) {
  int first = items > entries ? items - entries : 0, end = items < rows ? items : rows;
  while (first < end) {
    const int middle = first + (end - first) / 2;
    const int last = tw_within(tw::load_global(starts + middle + 1), 0, entries);
    if (last + middle < items) first = middle + 1; else end = middle;
  }
  return first;
}
"""
"""The C function that counts the rows that end among the first ``items`` of the list."""


@dataclass(frozen=True)
class Walk:
    """Writes the walk over the rows of ``row``. ``starts`` is C text of the pointer to where rows
    begin, ``start`` gives that of where one begins, at least at another one. ``parts`` and
    ``ended`` are those of pointers to parts of rows, and to the rows that teams ended."""

    sizes: RaggedSizes
    row: RowCode
    starts: str
    start: Callable[[str, str], str]
    parts: str
    ended: str

    @property
    def view(self) -> RaggedView:
        """The steps."""
        return self.sizes.view

    @property
    def step(self) -> Step:
        """The step whose partial results make up rows."""
        step = self.view.splittable
        assert step is not None
        return step

    @property
    def _axis(self) -> str:
        """The variable of a row."""
        return self.row.axes[self.view.range.row].text

    @property
    def _part(self) -> Part:
        return Part("first", "last")

    def _slot(self, number: str) -> str:
        """Return C text of the pointer to a part: a team has two."""
        return f"{self.parts} + (i64)({number}) * {self.sizes.row_elements(self.step)}"

    # -- a team --------------------------------------------------------------------------------

    def write(self, body: Body, task: Sequence[str]) -> None:
        """Write the work of a team, which has some if all tests of ``task`` hold."""
        rows, entries, items = self.view.rows, self.view.entries, self.sizes.items
        body.let("const int", "items", f"tw_least(team * {items}, {rows + entries})")
        body.let("const int", "next", f"tw_least(items + {items}, {rows + entries})")
        for name, count in (("row0", "items"), ("row1", "next")):
            found = f"tw_rows_before({self.starts}, {rows}, {entries}, {count})"
            body.let("const int", name, found)
        with self.row.loops(body, self.step.outer), self.row.lanes(body, self.step.lane) as lanes:
            self._rows(body, lanes)
        self._remember(body, task)

    def _rows(self, body: Body, lanes: Sequence[Lane]) -> None:
        """Write how a team reduces its entries, for some columns."""
        step, axis, rows = self.step, self._axis, self.view.rows
        body.let("int", axis, "row0")
        body.let("int", "begin", self.start(axis, "0"))
        body.let("int", "end", self.start(f"tw_least({axis} + 1, {rows})", "begin"))
        body.let("const bool", "begins", "items - row0 <= begin")
        body.let("const int", "first", "tw_most(items - row0, begin)")
        body.let("const int", "last", f"tw_least(next - row1, {self.start(str(rows), '0')})")
        self.row.declare(body, step, self.sizes.accumulators)
        with body.loop("int", "e", "last", first="first", step=self.sizes.unroll) as e:
            self._entries(body, lanes, e)
        with body.during(f"{axis} < row1"):
            self._end_row(body, lanes)
        with body.when(f"row1 < {rows} && last > begin"):
            self._leave(body, lanes, "2 * team + 1")

    def _entries(self, body: Body, lanes: Sequence[Lane], e: Index) -> None:
        """Write how entries join the states of their rows, each after the rows that end before."""
        step, reads = self.step, self.row.reads(body, self._part).inside()
        turns = self.row.turns(body, e, "last", 1)
        inside = [reads] * len(turns)
        if not step.inner:
            inside = self.row.at_turns(step, reads, lanes, turns)
        for own, turn in zip(inside, turns, strict=True):
            with body.during(f"end <= {turn.at} && {self._axis} < row1"):
                self._end_row(body, lanes)
            if step.inner:
                self._points(body, lanes, reads, turn)
            else:
                self.row.terms(body, step, own, lanes, turn)

    def _points(self, body: Body, lanes: Sequence[Lane], reads: Reads, turn: Turn) -> None:
        """Write how the points of an entry join the states."""
        with self.row.loops(body, self.step.inner):
            (own,) = self.row.at_turns(self.step, reads, lanes, [turn])
            self.row.terms(body, self.step, own, lanes, turn)

    def _end_row(self, body: Body, lanes: Sequence[Lane]) -> None:
        """Write how a row ends, and the next one begins."""
        axis = self._axis
        with body.when(f"begins || {axis} > row0"):
            self.row.give(body, self.step, self._part, lanes)
        with body.otherwise():
            self._leave(body, lanes, "2 * team")
        for i in range(self.sizes.accumulators):
            body.assign(f"s[{i}]", literal(REDUCERS[self.step.reducer or ""].identity))
        body.assign(axis, f"{axis} + 1")
        body.assign("begin", "end")
        body.assign("end", self.start(f"tw_least({axis} + 1, {self.view.rows})", "begin"))

    def _leave(self, body: Body, lanes: Sequence[Lane], slot: str) -> None:
        """Write how a team leaves a part of a row."""
        place = self.view.left_place(self.step)
        for number, lane in enumerate(lanes):
            reads = self.row.reads(body, self._part).inside()
            values = [f"s[{number * lane.count + i}]" for i in range(lane.count)]
            self.row.store(body, reads, self._slot(slot), "float32", place, values, lane)

    def _remember(self, body: Body, task: Sequence[str]) -> None:
        """Write how a team leaves which row it ended that others began; -1 for none."""
        began = f"row0 < row1 && items - row0 > {self.start('row0', '0')}"
        with body.where([*task, *[f"{self.row.lane} == 0"] * (self.sizes.lanes > 1)]):
            body.call("tw::store_global", f"{self.ended} + team", f"{began} ? row0 : -1")

    # -- parts ---------------------------------------------------------------------------------

    def join(self, body: Body, task: Sequence[str]) -> None:
        """Write how a team joins the parts of the row that it ended and others began: from that of
        the team in whose share the row begins to its own."""
        axis, step, rows = self._axis, self.step, self.view.rows
        found = f"tw::load_global({self.ended} + team)"
        body.let("const int", "ended", f"{task[0]} ? {found} : -1" if task else found)
        with body.when("ended >= 0"):
            body.let("const int", axis, f"tw_least(ended, {rows - 1})")
            body.let("const int", "begin", self.start(axis, "0"))
            body.let("const int", "first", f"(begin + {axis}) / {self.sizes.items}")
            part = Part("begin", "begin", end=self.start(f"{axis} + 1", "begin"))
            with self.row.loops(body, step.outer), self.row.lanes(body, step.lane) as lanes:
                self._join_parts(body, lanes)
                self.row.give(body, step, part, lanes)

    def _join_parts(self, body: Body, lanes: Sequence[Lane]) -> None:
        step, place = self.step, self.view.left_place(self.step)
        count, is_sum = self.sizes.accumulators, step.reducer == "sum"
        self.row.declare(body, step, count)
        if is_sum:
            body.let("float", "excess", "{}", count=count)
        with body.loop("int", "part", "team + 1", first=variable("first"), unroll=PARTS_AT_ONCE):
            slot = self._slot("2 * part + (part < team ? 1 : 0)")
            body.let("const float *const", "from", slot)
            reads = self.row.reads(body, self._part).inside()
            for number, lane in enumerate(lanes):
                name = body.let("float", f"part{number}", count=lane.count)
                where = f"from + {reads.index(place, {lane.axis: lane.at})}"
                sizes = f"{lane.count}, {width(place, lane.axis, 'float32', lane.count)}"
                body.call(f"tw_take<{sizes}>", name, where, lane.left)
                for i in range(lane.count):
                    state, other = f"s[{number * lane.count + i}]", f"{name}[{i}]"
                    if is_sum:
                        excess = f"excess[{number * lane.count + i}]"
                        body.call("tw_add_block", state, excess, other)
                    else:
                        body.assign(state, joined(step.reducer or "", state, other))
