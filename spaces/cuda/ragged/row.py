"""The steps of one row, each over all entries of the row, and the outputs.

Lanes lie along a kept axis if operands have adjacent elements along it: every entry then adds to
the same sums in registers, and a group reads several entries at a time, so that their answers are
on the way together. Otherwise the threads of a team lie along the entries, or along an axis that a
step reduces within an entry. Threads join their results by shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.ragged.reads import Lane, Reads, width
from tilewright.spaces.cuda.ragged.sizes import RaggedSizes
from tilewright.spaces.cuda.reducers import NOWHERE, joined, taken
from tilewright.spaces.cuda.scalar_code import literal
from tilewright.spaces.derivation.ragged.view import RaggedView, RowOutput, Step
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.language.functions import REDUCERS


@dataclass(frozen=True)
class Part:
    """Entries of a row that a team has: from ``low`` to before ``high``, C text, of those of the
    row from ``begin`` to before ``end``. The C ``test`` says that the team has a row; it is empty
    if all have one."""

    low: str
    high: str
    test: str = ""
    begin: str = "begin"
    end: str = "end"


@dataclass(frozen=True)
class Turn:
    """The entry ``at`` which a group reads; it counts if the C test ``exists`` holds, or always if
    that is empty."""

    at: Index
    exists: str = ""


@dataclass(frozen=True)
class RowCode:
    """Writes the steps of the row that the variable of its axis gives, by the threads of a team:
    ``group`` and ``lane`` are the places of a thread in it.

    ``arrays`` maps operands and outputs to C pointers, ``left`` the results of steps that are
    stored.
    """

    sizes: RaggedSizes
    arrays: Mapping[str, str]
    left: Mapping[str, str]
    group: Index
    lane: Index
    names: Iterator[int] = field(default_factory=count)

    @property
    def view(self) -> RaggedView:
        """The steps."""
        return self.sizes.view

    @cached_property
    def axes(self) -> Mapping[str, Index]:
        """The C variables of all axes."""
        extents = self.view.program.extents
        return {axis: variable(f"a{n}", extent) for n, (axis, extent) in enumerate(extents)}

    @property
    def _thread(self) -> Index:
        """The place of a thread in its team."""
        return self.group * self.sizes.lanes + self.lane

    def reads(self, body: Body, part: Part) -> Reads:
        """Return the reads of a row, of which the number of entries is known."""
        known = {
            step.name: f"({literal(step.counts)} * (float)({part.end} - {part.begin}))"
            for step in self.view.steps
            if step.counts is not None
        }
        pointers = {**self.arrays, **self.left}
        return Reads(self.view, body, self.axes, pointers, known, self.names)

    # -- the row -------------------------------------------------------------------------------

    def write(self, body: Body, part: Part) -> None:
        """Write all steps, each followed by the outputs that are known then."""
        for step in self.view.steps:
            if step.counts is None:
                self._step(body, step, part)
            for output in self.view.outputs:
                is_after = output.after == step.name and not step.finds_places
                if is_after and not (self.view.is_direct(output) and step.counts is None):
                    with body.block():
                        self._output(body, output, part)

    def _step(self, body: Body, step: Step, part: Part) -> None:
        with body.block():
            if step.along and step.lane != self.view.range.entry:
                self._within_entries(body, step, part)
            elif step.along:
                self._each_entry(body, step, part)
            else:
                with self.loops(body, self._outer(step)), self._columns(body, step) as lanes:
                    self.reduce(body, step, part, lanes)
                    self.give(body, step, part, lanes)
        if step.along or step.name in self.view.kept_steps:
            self._meet(body)

    def _outer(self, step: Step) -> Sequence[str]:
        """Return the kept axes around the columns that a thread reduces at a time."""
        return step.kept[:-1] if self._is_across(step) else step.outer

    def _is_across(self, step: Step) -> bool:
        """Tell whether all threads of a team share the entries of each column."""
        return step.lane == self.view.range.entry

    def _meet(self, body: Body) -> None:
        """Let the threads of a team see what others of it have stored."""
        if self.sizes.team > 1:
            body.call("tw::sync_warp")

    # -- loops ---------------------------------------------------------------------------------

    @contextmanager
    def loops(self, body: Body, axes: Sequence[str]) -> Iterator[None]:
        """Write loops over axes around what is written inside."""
        with ExitStack() as scopes:
            for axis in axes:
                name, extent = self.axes[axis].text, self.view.program.extent[axis]
                scopes.enter_context(body.loop("int", name, extent))
            yield

    @contextmanager
    def lanes(self, body: Body, axis: str) -> Iterator[list[Lane]]:
        """Write what is inside for all columns along an axis, a number of vectors at a time."""
        sizes, extent = self.sizes, self.view.program.extent[axis]
        with ExitStack() as scopes:
            base = Index()
            if extent > sizes.columns:
                loop = body.loop("int", "column0", extent, step=sizes.columns)
                base = scopes.enter_context(loop)
            yield list(self._vectors(axis, base))

    @contextmanager
    def _columns(self, body: Body, step: Step) -> Iterator[list[Lane]]:
        """Write what is inside for all columns of a reduction: along its lane, or along its last
        kept axis if threads lie along entries, which then have the same columns."""
        if not self._is_across(step):
            with self.lanes(body, step.lane) as lanes:
                yield lanes
            return
        axis = step.kept[-1] if step.kept else ""
        extent = self.view.program.extent[axis] if axis else 1
        count, base = min(self.sizes.accumulators, extent), Index()
        with ExitStack() as scopes:
            if extent > count:
                base = scopes.enter_context(body.loop("int", "column0", extent, step=count))
            left = f"({extent} - {base})" if extent % count else str(count)
            yield [Lane(axis, base, count, left)]

    def _vectors(self, axis: str, base: Index) -> Iterator[Lane]:
        sizes, extent = self.sizes, self.view.program.extent[axis]
        for number in range(sizes.vectors):
            at = base + self.lane * sizes.vector + number * sizes.lanes * sizes.vector
            left = f"({extent} - ({at.text}))" if extent % sizes.columns else str(sizes.vector)
            yield Lane(axis, at, sizes.vector, left)

    @contextmanager
    def _in_blocks(
        self, body: Body, step: Step, part: Part, count: int, each: int
    ) -> Iterator[tuple[str, str]]:
        """Write what is inside for all entries of a part, whose ``count`` sums are added up in
        blocks of ``each`` entries if they may be long; give the first entry of a block and its
        end."""
        if step.reducer != "sum" or self._most_entries <= each:
            yield part.low, part.high
            return
        body.let("float", "before", "{}", count=count)
        body.let("float", "excess", "{}", count=count)
        with body.loop("int", "first", part.high, first=part.low, step=each) as first:
            stop = body.let("const int", "stop", f"tw_least({part.high}, {first} + {each})")
            yield first.text, stop
            for i in range(count):
                body.call("tw_add_block", f"before[{i}]", f"excess[{i}]", f"s[{i}]")
                body.assign(f"s[{i}]", literal(0.0))
        for i in range(count):
            body.assign(f"s[{i}]", f"before[{i}]")

    @property
    def _most_entries(self) -> int:
        """The most entries of a part."""
        entries = self.view.entries
        return entries if self.view.has_rows else min(entries, int(self.sizes.items))

    # -- reductions of entries --------------------------------------------------------------------

    def reduce(self, body: Body, step: Step, part: Part, lanes: Sequence[Lane]) -> None:
        """Write how a team reduces a part: ``s[i]``, in all threads that have the same column, and
        for places ``p[i]``."""
        sizes, across = self.sizes, self._is_across(step)
        count = sum(lane.count for lane in lanes)
        first_thread, apart = (self._thread, sizes.team) if across else (self.group, sizes.groups)
        self.declare(body, step, count)
        reads = self.before(body, step, part, lanes, step.inner)
        each = int(sizes.block_entries(step)) * (sizes.lanes if across else 1)
        with (
            self._in_blocks(body, step, part, count, each) as (first, stop),
            body.loop(
                "int",
                "e",
                stop,
                first=first_thread + variable(first),
                step=apart * sizes.unroll,
            ) as e,
        ):
            turns = self.turns(body, e, stop, apart)
            with self.loops(body, step.inner):
                inside = self.at_turns(step, reads, lanes, turns)
                for own, turn in zip(inside, turns, strict=True):
                    self.terms(body, step, own, lanes, turn)
        for mask in self.masks(1 if across else sizes.lanes, sizes.team):
            self.join_threads(body, step, count, mask)

    def turns(self, body: Body, e: Index, stop: str, apart: int) -> list[Turn]:
        """Declare the entries that a group reads at a time, from ``e`` on, so far ``apart``. Of
        those that do not exist it reads the last one again: all are read before one counts."""
        turns = [Turn(e)]
        for number in range(1, self.sizes.unroll):
            at = e + number * apart
            exists = body.let("const bool", f"is{number}", f"{at.text} < {stop}")
            name = body.let("const int", f"e{number}", f"{exists} ? {at.text} : {stop} - 1")
            turns.append(Turn(variable(name, self.view.entries), exists))
        return turns

    def before(
        self, body: Body, step: Step, part: Part, lanes: Sequence[Lane], inner: Sequence[str]
    ) -> Reads:
        """Load what is the same for all entries, and all points of ``inner`` axes."""
        reads = self.reads(body, part).inside()
        for node in dict.fromkeys(step.body.value_reads):
            if not {self.view.range.entry, *inner} & self.view.places[node].names:
                for lane in lanes:
                    reads.load(node, lane)
        return reads

    def at_turns(
        self, step: Step, reads: Reads, lanes: Sequence[Lane], turns: Sequence[Turn]
    ) -> list[Reads]:
        """Load what the terms of all turns read."""
        inside = [reads.inside({self.view.range.entry: turn.at}) for turn in turns]
        for own in inside:
            for node in dict.fromkeys(step.body.value_reads):
                for lane in lanes:
                    own.load(node, lane)
        return inside

    def terms(
        self, body: Body, step: Step, reads: Reads, lanes: Sequence[Lane], turn: Turn
    ) -> None:
        """Write how the terms of an entry join the states."""
        for number, lane in enumerate(lanes):
            for i in range(lane.count):
                self._term(body, step, reads, number * lane.count + i, turn, lane, i)

    def _term(
        self,
        body: Body,
        step: Step,
        reads: Reads,
        number: int,
        turn: Turn,
        lane: Lane | None = None,
        i: int = 0,
    ) -> None:
        """Write how a term joins the state of a number, if its entry exists."""
        scope, state = reads.scope(lane, i), f"s[{number}]"
        if step.finds_places:
            value = scope.number(step.body)
            with body.where([turn.exists] * bool(turn.exists), brief=True):
                body.call(f"tw_{step.reducer}", state, f"p[{number}]", value, turn.at)
            return
        factors = scope.factors(step.body) if step.reducer == "sum" else (step.body,)
        value = taken(step.reducer or "", state, [scope.number(factor) for factor in factors])
        body.assign(state, f"{turn.exists} ? {value} : {state}" if turn.exists else value)

    # -- states --------------------------------------------------------------------------------

    def declare(self, body: Body, step: Step, count: int) -> None:
        """Declare states without entries."""
        nothing = literal(REDUCERS[step.reducer or ""].identity)
        body.let("float", "s", f"{{{', '.join([nothing] * count)}}}", count=count)
        if step.finds_places:
            body.let("int", "p", f"{{{', '.join([NOWHERE] * count)}}}", count=count)

    @staticmethod
    def masks(first: int, end: int) -> Iterator[int]:
        """Yield the distances of threads that join their states: from one on, to before an end."""
        while first < end:
            yield first
            first *= 2

    def join_threads(self, body: Body, step: Step, count: int, mask: int) -> None:
        """Write how two threads join their states, each of which then has the same."""
        for i in range(count):
            value = f"tw::shuffle_xor(s[{i}], {mask})"
            if step.finds_places:
                place = f"tw::shuffle_xor(p[{i}], {mask})"
                body.call(f"tw_{step.reducer}", f"s[{i}]", f"p[{i}]", value, place)
            else:
                body.assign(f"s[{i}]", joined(step.reducer or "", f"s[{i}]", value))

    # -- results -------------------------------------------------------------------------------

    def give(self, body: Body, step: Step, part: Part, lanes: Sequence[Lane]) -> None:
        """Write how those who have the states of a column use them once: for outputs, and for what
        later steps read."""
        with body.where(self._once(step, part)):
            for number, lane in enumerate(lanes):
                self._give_vector(body, step, part, number, lane)

    def _give_vector(self, body: Body, step: Step, part: Part, number: int, lane: Lane) -> None:
        reads = self.reads(body, part).inside()
        first = number * lane.count
        if step.name in self.view.kept_steps:
            values = [f"s[{first + i}]" for i in range(lane.count)]
            place = self.view.left_place(step)
            self.store(body, reads, self.left[step.name], "float32", place, values, lane)
        for output in self.view.outputs:
            if output.after != step.name:
                continue
            if step.finds_places:
                values = [self._place(part, f"p[{first + i}]") for i in range(lane.count)]
            elif self.view.is_direct(output):
                values = [
                    reads.knowing({step.name: f"s[{first + i}]"}).number(output.value, lane, i)
                    for i in range(lane.count)
                ]
            else:
                continue
            pointer, kind = self.arrays[output.output.name], output.output.dtype
            self.store(body, reads, pointer, kind, output.place, values, lane)

    @staticmethod
    def _place(part: Part, place: str) -> str:
        """Return C text of the place of the best entry; 0 of a row without entries."""
        return f"({part.begin} < {part.end} ? {place} : 0)"

    def store(
        self,
        body: Body,
        reads: Reads,
        pointer: str,
        kind: str,
        place: Index,
        values: Sequence[str],
        lane: Lane,
    ) -> None:
        """Write how neighbours along a lane are stored as elements of a dtype."""
        c_type, step = C_TYPES[kind], place.step(lane.axis)
        name = body.let(c_type, f"y{next(self.names)}", count=lane.count)
        for i, value in enumerate(values):
            body.assign(f"{name}[{i}]", self._converted(kind, value))
        if step == 1:
            where = f"{pointer} + {reads.index(place, {lane.axis: lane.at})}"
            step = width(place, lane.axis, kind, lane.count)
            body.call(f"tw_give<{lane.count}, {step}>", where, name, lane.left)
            return
        for i in range(lane.count):
            where = f"{pointer} + {reads.index(place, {lane.axis: lane.at + i})}"
            with body.where([f"{i} < {lane.left}"] * (not lane.is_whole), brief=True):
                body.call("tw::store_global", where, f"{name}[{i}]")

    @staticmethod
    def _converted(kind: str, value: str) -> str:
        c_type = C_TYPES[kind]
        return (
            f"({c_type}){value}" if c_type.startswith("i") else f"tw::from_float<{c_type}>({value})"
        )

    def _once(self, step: Step, part: Part) -> list[str]:
        """Return C tests that let one thread go on of those that have the same states of a row."""
        tests = [part.test] * bool(part.test)
        if self._is_across(step):
            return [*tests, f"{self._thread} == 0"]
        return [*tests, *[f"{self.group} == 0"] * (self.sizes.groups > 1)]

    # -- threads along entries ---------------------------------------------------------------------

    @contextmanager
    def _thread_loop(self, body: Body, first: str, stop: str) -> Iterator[Index]:
        """Write a loop over the entries of a thread, several of which it may read at a time."""
        begin, unroll = self._thread + variable(first), self.sizes.unroll
        with body.loop("int", "e", stop, first=begin, step=self.sizes.team, unroll=unroll) as e:
            yield e

    def _each_entry(self, body: Body, step: Step, part: Part) -> None:
        """Write how a thread leaves the value of each of its entries."""
        with self.loops(body, step.kept), self._thread_loop(body, part.low, part.high) as e:
            reads = self.reads(body, part).inside({self.view.range.entry: e})
            self._leave(body, step, reads, reads.number(step.body))

    def _leave(self, body: Body, step: Step, reads: Reads, value: str) -> None:
        """Write how a value is stored for later steps, at the variables of axes."""
        place = reads.index(self.view.left_place(step))
        body.call("tw::store_global", f"{self.left[step.name]} + {place}", value)

    def _store_one(self, body: Body, output: RowOutput, reads: Reads, value: str) -> None:
        where = f"{self.arrays[output.output.name]} + {reads.index(output.place)}"
        body.call("tw::store_global", where, self._converted(output.output.dtype, value))

    # -- threads within an entry -------------------------------------------------------------------

    def _within_entries(self, body: Body, step: Step, part: Part) -> None:
        """Write a step that reduces within each entry: lanes share its terms, and groups take
        entries in turns. All threads of a warp take as many turns, for they shuffle in each."""
        sizes, count = self.sizes, self.sizes.unroll
        each = sizes.groups * count
        number = f"tw_turns<{each}, {sizes.team}>({part.high} - {part.low})"
        with (
            self.loops(body, step.kept),
            body.loop("int", "turn", body.let("const int", "turns", number)) as turn,
        ):
            at = self.group + variable(part.low) + turn * each
            e = variable(body.let("const int", "e", at), self.view.entries)
            self.declare(body, step, count)
            with body.when(f"{e} < {part.high}"):
                turns = self.turns(body, e, part.high, sizes.groups)
                with self.loops(body, step.inner[:-1]), self.lanes(body, step.lane) as lanes:
                    reads = self.before(body, step, part, lanes, ())
                    self._dots(body, step, reads, turns, lanes)
            for mask in self.masks(1, sizes.lanes):
                self.join_threads(body, step, count, mask)
            for u in range(count):
                at = e + u * sizes.groups
                own = self.reads(body, part).inside({self.view.range.entry: at})
                real = [f"{at.text} < {part.high}", *[f"{self.lane} == 0"] * (sizes.lanes > 1)]
                with body.where(real):
                    self._leave(body, step, own, f"s[{u}]")

    def _dots(
        self, body: Body, step: Step, reads: Reads, turns: Sequence[Turn], lanes: Sequence[Lane]
    ) -> None:
        """Write how the terms of vectors of several entries join their states."""
        inside = self.at_turns(step, reads, lanes, turns)
        for number, (own, turn) in enumerate(zip(inside, turns, strict=True)):
            for lane in lanes:
                for i in range(lane.count):
                    real = "" if lane.is_whole else f"{i} < {lane.left}"
                    self._term(body, step, own, number, Turn(turn.at, real), lane, i)

    # -- outputs -------------------------------------------------------------------------------

    def _output(self, body: Body, output: RowOutput, part: Part) -> None:
        """Write an output of results that are in memory, or of numbers of entries."""
        loops = output.axes
        if output.along:
            with self.loops(body, loops), self._thread_loop(body, part.low, part.high) as e:
                reads = self.reads(body, part).inside({self.view.range.entry: e})
                self._store_one(body, output, reads, reads.number(output.value))
            return
        tests = [part.test] * bool(part.test)
        if not loops:
            with body.where([*tests, f"{self._thread} == 0"]):
                reads = self.reads(body, part).inside()
                self._store_one(body, output, reads, reads.number(output.value))
            return
        name, extent = self.axes[loops[-1]].text, self.view.program.extent[loops[-1]]
        with (
            body.where(tests),
            self.loops(body, loops[:-1]),
            body.loop("int", name, extent, first=self._thread, step=self.sizes.team),
        ):
            reads = self.reads(body, part).inside()
            self._store_one(body, output, reads, reads.number(output.value))
