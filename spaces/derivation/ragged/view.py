"""View a program as steps of a row: reductions over the row's entries, and what these read.

    row: int32[e](sorted < r); where row[e] == r; y[r,c] = sum[e](softmax[e](s[e]) * v[col[e],c])

A row has a range of entries (:mod:`spaces.language.ranges`). Each step takes all of the row's
entries: it reduces them, or it leaves a value of each for later steps. So a row stays in caches
from step to step, and no step has more work than there are entries.

A program whose outputs have an element for each entry, which tables choose what it is made of, has
the same steps, and no rows: `s[e] = sum[d](q[row[e],d] * k[col[e],d])`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.products.addresses import address_of
from tilewright.spaces.derivation.products.splitting import Indexing, whole_axes
from tilewright.spaces.derivation.rows.served import why_product
from tilewright.spaces.derivation.work import PLAIN
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.language.ranges import Range, ranges
from tilewright.spaces.language.tree import AxisValue, Binary, Call, Expression, Number, Read

NO_ROWS = ""
"""The row of a range of all entries, which belong to no rows."""


@dataclass(frozen=True)
class Step:
    """One pass over a row's entries: ``body`` at each, reduced by ``reducer`` if there is one.

    A step ``along`` entries leaves a value for each of them; it may reduce ``inner`` axes at an
    entry. Another one reduces all entries to one value for each point of ``kept``. Neighbours
    along the axis ``lane`` are computed at the same time; it is the fastest of ``kept`` or
    ``inner``, or that of entries.
    """

    name: str
    body: Expression
    reducer: str | None
    along: bool
    kept: tuple[str, ...]
    inner: tuple[str, ...]
    lane: str

    @property
    def counts(self) -> float | None:
        """The number that each entry adds, if it is the same for all; None otherwise."""
        match self.body:
            case Number(value) if self.reducer == "sum" and not self.along and not self.inner:
                return value
        return None

    @property
    def finds_places(self) -> bool:
        """Tell whether the step finds which entry is the best one."""
        return self.reducer is not None and REDUCERS[self.reducer].argument

    @property
    def outer(self) -> tuple[str, ...]:
        """The kept axes that have loops of their own."""
        return tuple(axis for axis in self.kept if axis != self.lane)


@dataclass(frozen=True)
class RowOutput:
    """An output: ``value`` at each point of its axes beside the row, of which ``lane`` is the
    fastest if there is one. It is known ``after`` a step. One ``along`` entries has an element for
    each of them, and ``axes`` are the others."""

    output: Output
    axes: tuple[str, ...]
    value: Expression
    after: str
    place: Index
    along: bool

    @property
    def lane(self) -> str | None:
        """The axis along which elements lie side by side."""
        return self.axes[-1] if self.axes else None


@dataclass(frozen=True)
class RaggedView:
    """The steps of each row in order, and the outputs. ``places`` says where reads find their
    elements: in operands, or in what earlier steps have left."""

    program: Program
    range: Range
    steps: tuple[Step, ...]
    outputs: tuple[RowOutput, ...]
    places: Mapping[Read, Index] = field(hash=False)

    @cached_property
    def step(self) -> Mapping[str, Step]:
        """Steps by name."""
        return {step.name: step for step in self.steps}

    @property
    def has_rows(self) -> bool:
        """Tell whether entries belong to rows."""
        return self.range.row != NO_ROWS

    @property
    def rows(self) -> int:
        """Rows of a call; one where entries belong to none."""
        return self.program.extent[self.range.row] if self.has_rows else 1

    @property
    def entries(self) -> int:
        """Entries of a call."""
        return self.program.extent[self.range.entry]

    @cached_property
    def kept_steps(self) -> frozenset[str]:
        """Reductions whose results later code reads from memory."""
        read = {r.name for step in self.steps for r in step.body.value_reads}
        for output in self.outputs:
            if self.step[output.after].finds_places:
                continue
            names = {r.name for r in output.value.value_reads}
            read |= names if not self.is_direct(output) else names - {output.after}
        return frozenset(step.name for step in self.steps if not step.along and step.name in read)

    def is_direct(self, output: RowOutput) -> bool:
        """Tell whether an output is computed from what its last step has in registers."""
        if output.along:
            return False
        step = self.step[output.after]
        beside = step.lane in (output.lane, self.range.entry)
        return not step.along and step.kept == output.axes and beside

    @property
    def splittable(self) -> Step | None:
        """The one step whose partial results make up a row's, so that rows can be split."""
        (*others, last) = sorted(self.steps, key=lambda step: step.counts is None)
        alone = all(step.counts is not None for step in others) and last.counts is None
        plain = not last.along and not last.finds_places and last.lane != self.range.entry
        reads = {read.name for read in last.body.value_reads}
        direct = all(o.after == last.name and self.is_direct(o) for o in self.outputs)
        return last if alone and plain and direct and not reads & {s.name for s in others} else None

    def left_place(self, step: Step) -> Index:
        """Return the place at which a step leaves a value, by the names of axes: values of entries
        lie side by side, for each point of the kept axes; others are those of one row."""
        extent, place, size = self.program.extent, Index(), 1
        if step.along:
            place, size = variable(self.range.entry, self.entries), self.entries
        for axis in reversed(step.kept):
            place = place + variable(axis, extent[axis]) * size
            size *= extent[axis]
        return place

    def elements(self, step: Step) -> int:
        """Count the elements that a step leaves for one row, or for each entry."""
        return prod(self.program.shape(step.kept))


def ragged_of(program: Program) -> RaggedView:
    """Return the program seen so; :class:`InputError` says why it cannot be."""
    return _Reading(program, _one_range(program)).view()


cached_ragged = lru_cache(maxsize=64)(ragged_of)


def _one_range(program: Program) -> Range:
    found = ranges(program)
    every = {*found.reductions.values()}
    if not every:
        return Range(NO_ROWS, _gathering_axis(program), "", True, ())
    if len(every) > 1:
        names = ", ".join(sorted(own.table for own in every))
        raise InputError(f"ranges of {len(every)} axes are reduced, by {names}; allowed: one")
    (own,) = every
    for stage in program.stages:
        others = [c for c in program.bounding(stage) if c not in own.conditions]
        if others:
            raise InputError(f"'where {others[0]}' bounds what a range does not end")
    return own


def _gathering_axis(program: Program) -> str:
    """Return the axis of all outputs along which tables choose what sums within its elements
    read."""
    axes = frozenset.intersection(*(frozenset(program.stage[o.name].axes) for o in program.outputs))
    sums = [stage for stage in program.stages if stage.reducer]
    chosen = {
        axis
        for stage in sums
        for read in stage.body.value_reads
        for index in read.indices
        for entry in index.reads
        for axis in entry.axes & axes
    }
    if program.conditions or len(chosen) != 1 or any(chosen & {*s.over} for s in sums):
        raise InputError("no sorted table and no pointers make a range of what is reduced")
    (found,) = chosen
    if len(sums) > 1 or any(found not in stage.axes for stage in program.stages):
        raise InputError(f"more than one sum, or a stage that has no element for each {found}")
    if reason := why_product(program):
        raise InputError(reason)
    return found


@dataclass
class _Reading:
    """Makes the view of a program of one range."""

    program: Program
    range: Range

    def view(self) -> RaggedView:
        steps = self._ordered(
            [step for stage in self.program.stages for step in self._steps(stage)]
        )
        known = {step.name: step for step in steps}
        outputs = tuple(self._output(output, steps) for output in self.program.outputs)
        reads = dict.fromkeys(
            read
            for expression in (*(s.body for s in steps), *(o.value for o in outputs))
            for read in expression.value_reads
        )
        places = {read: self._place(read, known) for read in reads}
        return RaggedView(self.program, self.range, tuple(steps), outputs, places)

    # -- steps ---------------------------------------------------------------------------------

    def _steps(self, stage: Stage) -> Iterator[Step]:
        """Yield the steps of a stage: what its terms need for each entry alone first."""
        row, entry = self.range.row, self.range.entry
        along = stage.name in ranges(self.program).along or self.range.row == NO_ROWS
        if along and not stage.reducer and stage.name in self._written:
            return
        if not along and stage.name not in ranges(self.program).reductions:
            if stage.reducer is not None or not set(stage.axes) >= {row} or entry in stage.axes:
                raise InputError(f"{stage.name} is not of the entries of a row")
            return
        if stage.reducer and REDUCERS[stage.reducer].argument and self._is_read(stage):
            raise InputError(f"{stage.name} is a place that later stages read")
        kept = tuple(axis for axis in stage.axes if axis not in (row, entry))
        inner = tuple(axis for axis in stage.over if axis != entry)
        if along and stage.reducer is None and self._is_plain(stage):
            return
        lane = entry
        if along and inner:
            lane = inner[-1]
        elif not along and kept and self._is_beside(stage.body, kept[-1]):
            lane = kept[-1]
        body = inlined(self.program, stage.body, self._is_plain)
        if lane != entry:
            found = self._alone(body, lane)
            for number, node in enumerate(found):
                name = f"{stage.name}.{number}"
                axes = tuple(a for a in self.program.extent if a in node.axes - {row, entry})
                yield Step(name, node, None, True, axes, (), entry)
                own = Read(name, tuple(map(AxisValue, (*axes, entry))))
                body = _with(body, node, own)
        yield Step(stage.name, body, stage.reducer, along, kept, inner, lane)

    def _is_read(self, stage: Stage) -> bool:
        return any(r.name == stage.name for s in self.program.stages for r in s.body.reads)

    def _is_beside(self, body: Expression, axis: str) -> bool:
        """Tell whether an operand has neighbours along an axis side by side."""
        body = inlined(self.program, body, lambda _: True)
        return any(
            self.program.operand[read.name].strides[dimension] == 1
            for read in body.value_reads
            for dimension, index in enumerate(read.indices)
            if read.name in self.program.operand and index == AxisValue(axis)
        )

    def _is_inlined(self, stage: Stage) -> bool:
        """Tell whether a map along entries is computed where it is read: it has the lanes of all
        its readers, so that it would be an array of more than the entries."""
        readers = [
            s for s in self.program.stages if any(r.name == stage.name for r in s.body.reads)
        ]
        return all(
            (r.reducer is None and self._is_inlined(r))
            or (
                r.name in ranges(self.program).reductions
                and r.axes[-1] in stage.axes
                and r.axes[-1] != self.range.row
            )
            for r in readers
        )

    def _is_plain(self, stage: Stage) -> bool:
        """Tell whether a map leaves nothing behind."""
        if self.range.row == NO_ROWS:
            return True
        return stage.name not in ranges(self.program).along or self._is_inlined(stage)

    def _alone(self, body: Expression, lane: str) -> list[Expression]:
        """List the largest parts of a body that take long to compute, and are alike in all
        lanes."""
        found: dict[Expression, None] = {}
        waiting = [body]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Read):
                continue
            alike = lane not in node.axes and self.range.entry in node.axes
            if alike and any(map(_is_long, node.values())):
                found[node] = None
            else:
                waiting += reversed(node.children)
        return list(found)

    def _ordered(self, steps: list[Step]) -> list[Step]:
        """Return steps in an order in which each reads earlier ones, those with few results
        first."""
        left, done = list(steps), list[Step]()
        while left:
            names = {step.name for step in left}
            ready = [s for s in left if not names & {read.name for read in s.body.value_reads}]
            chosen = min(ready, key=lambda step: bool(step.kept) and not step.along)
            left.remove(chosen)
            done.append(chosen)
        return done

    # -- outputs -------------------------------------------------------------------------------

    def _output(self, output: Output, steps: list[Step]) -> RowOutput:
        stage = self.program.stage[output.name]
        own = Read(stage.name, tuple(map(AxisValue, stage.axes)))
        along = self.range.entry in stage.axes
        if along == (self.range.row in stage.axes):
            raise InputError(f"{output.name} has no element for each row, or none for each entry")
        value = own if stage.reducer else inlined(self.program, stage.body, lambda _: True)
        read = {r.name for r in value.value_reads}
        last = [step.name for step in steps if step.name in read]
        if not last:
            raise InputError(f"{output.name} reads nothing that rows reduce")
        axes = tuple(a for a in stage.axes if a not in (self.range.row, self.range.entry))
        steps_of = dict(zip(stage.axes, output.strides, strict=True))
        last_step = next(step for step in steps if step.name == last[-1])
        if set(last_step.kept) == set(axes) and not along:
            axes = last_step.kept
        else:
            axes = tuple(sorted(axes, key=lambda axis: -steps_of[axis]))
        place = self._indexing.place(map(AxisValue, stage.axes), output.strides)
        return RowOutput(output, axes, value, last[-1], place, along)

    @cached_property
    def _written(self) -> frozenset[str]:
        return frozenset(output.name for output in self.program.outputs)

    # -- places --------------------------------------------------------------------------------

    @cached_property
    def _indexing(self) -> Indexing:
        tables = {o.name: o.drawn.below for o in self.program.operands if o.drawn}
        return Indexing(whole_axes(self.program), tables)

    def _place(self, read: Read, steps: Mapping[str, Step]) -> Index:
        if read.name in steps:
            return self._left(read, steps[read.name])
        if read.name not in self.program.operand:
            raise InputError(f"{read.name} is read, which no step of a row leaves")
        found = address_of(self.program, self._indexing, read)
        if found.bounds:
            raise InputError(f"{read} leaves {read.name}; entries of a row are read where they are")
        return found.offset

    def _left(self, read: Read, step: Step) -> Index:
        """Return the place of what a step has left: for each point of its kept axes, one value for
        each entry if it is along them."""
        stage = self.program.stage.get(step.name)
        axes = stage.axes if stage else (*step.kept, self.range.entry)
        for axis, index in zip(axes, read.indices, strict=True):
            if axis in (self.range.row, self.range.entry) and index != AxisValue(axis):
                raise InputError(f"{read} is of another row or entry")
        strides, size = {self.range.row: 0}, 1
        if step.along:
            strides[self.range.entry], size = 1, self.program.extent[self.range.entry]
        for axis in reversed(step.kept):
            strides[axis] = size
            size *= self.program.extent[axis]
        return self._indexing.place(read.indices, [strides[axis] for axis in axes])


def _is_long(node: Expression) -> bool:
    if isinstance(node, Call):
        return node.function not in PLAIN
    return isinstance(node, Binary) and node.operator == "/"


def _with(node: Expression, old: Expression, new: Expression) -> Expression:
    if node == old:
        return new
    children = tuple(_with(child, old, new) for child in node.children)
    return node if children == node.children else node.with_children(children)
