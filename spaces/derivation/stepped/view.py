"""A program as a walk along steps: at each, all its stages are computed from the state before.

    u[h, t, e] = sum[d](k[h, t, d] * inside(S[h, t - 1, d, e], 0))
    S[h, t, d, e] = inside(S[h, t - 1, d, e], 0) + k[h, t, d] * (v[h, t, e] - u[h, t, e])
    o[h, t, e] = sum[d](q[h, t, d] * S[h, t, d, e])

Nothing depends on another ``h`` or ``e``: these are rows, walked by themselves, and lanes.
The other axes are inner ones of the state. Stages are in groups that one loop over inner axes
computes: here ``u``, and then ``S`` with ``o``, for sums take in each element as it is made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from math import prod

from tilewright.spaces.derivation.algebra import ZERO
from tilewright.spaces.derivation.gradients.means import without_counts
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.rounding.rows import row_axes
from tilewright.spaces.derivation.rows.addresses import Steps, steps_of_output, steps_of_read
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import Affine, affine
from tilewright.spaces.language.bounds import Bounds
from tilewright.spaces.language.cycles import cycles, step_of
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.language.reading.inference import entry_ranges
from tilewright.spaces.language.tree import AxisValue, Expression, Read, Select

REDUCERS = ("sum", "max", "min")
"""Reducers whose results are made element by element."""


@dataclass(frozen=True)
class Group:
    """Stages that one loop computes over ``kept`` axes, and within it over the ``reduced`` ones: a
    sum with both, or maps over all and reductions over all. Without axes, each is a value."""

    kept: tuple[str, ...]
    reduced: tuple[str, ...]
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class SteppedView:
    """The stages of a program that are computed at each step of the axis ``position``, in
    ``groups``. Rows are independent of each other, and so are lanes along the axis ``lane``; it
    is empty where no axis is independent: a vector has one element then. Lanes that are reduced are
    ``across``: of the stages that do so, each reduces lanes alone. Steps go up where the
    ``direction`` is 1, and down from the last one where it is -1: what is read "one step before" is
    at the place ``position - direction``.
    """

    program: Program
    rows: tuple[str, ...]
    position: str
    lane: str
    stages: tuple[Stage, ...]
    direction: int = 1
    across: bool = False

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs."""
        return self.program.outputs

    @cached_property
    def stage(self) -> Mapping[str, Stage]:
        """The stages that are computed, by name."""
        return {stage.name: stage for stage in self.stages}

    def extent(self, *axes: str) -> int:
        """Return the number of points of some axes."""
        return prod(self.program.extent[axis] for axis in axes if axis)

    @cached_property
    def inner(self) -> tuple[str, ...]:
        """The axes beside rows, positions and lanes."""
        outer = {*self.rows, self.position, self.lane}
        every = (axis for stage in self.stages for axis in (*stage.axes, *stage.over))
        return tuple(axis for axis in dict.fromkeys(every) if axis not in outer)

    def inner_of(self, axes: Sequence[str]) -> tuple[str, ...]:
        """Return the inner ones of some axes."""
        return tuple(axis for axis in axes if axis in self.inner)

    def before_inner(self, node: Expression) -> Iterator[Expression]:
        """Yield the largest parts of an expression that lanes differ in and no inner axis is in:
        they can be computed before loops over such axes."""
        if self.lane not in node.axes:
            return
        if node.axes.isdisjoint(self.inner):
            yield node
        elif not isinstance(node, Read):
            for child in node.children:
                yield from self.before_inner(child)

    def is_before(self, read: Read) -> bool:
        """Tell whether a read is of a stage one step before."""
        found = self.program.stage.get(read.name)
        if found is None or read.outside is None or self.position not in found.axes:
            return False
        return self.position in read.indices[found.axes.index(self.position)].axes

    @cached_property
    def first(self) -> Mapping[str, float]:
        """The value that each array of the state has before the first step."""
        return {r.name: r.outside or 0.0 for r in self._reads if self.is_before(r)}

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in order."""
        found: list[Group] = []
        for stage in self.stages:
            kept = self.inner_of(stage.axes)
            reduced = tuple(axis for axis in stage.over if axis != self.lane)
            own = Group(kept, reduced, (stage,))
            last = found[-1] if found else None
            if last is not None and self._joins(last, own):
                axes = last.kept or last.reduced
                found[-1] = Group(axes, (), (*last.stages, stage))
            else:
                found.append(own)
        return tuple(found)

    def _joins(self, group: Group, own: Group) -> bool:
        """Tell whether a stage is computed in the loop of a group."""
        if (group.kept and group.reduced) or (own.kept and own.reduced):
            return False
        if {*group.kept, *group.reduced} != {*own.kept, *own.reduced}:
            return False
        (stage,) = own.stages
        known = {other.name: other for other in group.stages}
        for read in stage.body.value_reads:
            other = known.get(read.name)
            if other is None or self.is_before(read):
                continue
            if other.reducer or read.indices != tuple(map(AxisValue, other.axes)):
                return False
        return True

    def is_double(self, name: str) -> bool:
        """Tell whether the state has two arrays, for the last step and this one: where a stage that
        is made later reads it, or one of the same loop another element than the one that is
        made."""
        own = self.stage[name]
        if not self.inner_of(own.axes):
            return False
        made = next(group for group in self.groups if own in group.stages)
        later = self.stages[self.stages.index(own) + 1 :]
        return any(
            stage in later or (stage in made.stages and not self._is_at(read, own))
            for stage in self.stages
            for read in stage.body.value_reads
            if read.name == name and self.is_before(read)
        )

    def _is_at(self, read: Read, stage: Stage) -> bool:
        """Tell whether a read is of the element of a stage that is made, one step before."""
        at = zip(stage.axes, read.indices, strict=True)
        return all(index == AxisValue(axis) for axis, index in at if axis != self.position)

    @cached_property
    def _reads(self) -> tuple[Read, ...]:
        every = (read for stage in self.stages for read in stage.body.value_reads)
        return tuple(dict.fromkeys(every))

    @cached_property
    def places(self) -> Mapping[Read, Steps]:
        """The place of each read of an operand, where it is of its array."""
        return {
            read: steps_of_read(self.program.operand[read.name], replace(read, outside=None))
            for read in self._reads
            if read.name in self.program.operand
        }

    @cached_property
    def borders(self) -> Mapping[Read, tuple[Affine, ...]]:
        """The reads of operands that may leave their arrays, each with what is not negative where
        they do not. No lane is among it."""
        return {
            read: tuple(_borders(self.program, read))
            for read in self.places
            if read.outside is not None
        }

    @cached_property
    def entries(self) -> Mapping[Read, Steps]:
        """The places of the entries of tables that choose elements of operands. All lanes have the
        same ones."""
        found = (entry for places in self.places.values() for entry, _ in places.gathers)
        return {read: steps_of_read(self.program.operand[read.name], read) for read in found}

    @cached_property
    def held(self) -> tuple[Read, ...]:
        """The reads of operands that are alike at all steps, whose lanes are apart in memory: they
        are copied before the first step."""
        return tuple(
            read
            for read, places in self.places.items()
            if places.step(self.lane) not in (0, 1) and self.position not in read.axes
        )

    def written(self, output: Output) -> Steps:
        """Return the place where an output is written."""
        return steps_of_output(output, self.program.stage[output.name].axes)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions that kernels compute."""
        return tuple(stage.body for stage in self.stages)


def stepped_view(program: Program, borders: bool = False, across: int = 0) -> SteppedView:
    """Return how a program is computed step by step; :class:`InputError` says why it is not. Reads
    of operands stay within their arrays, and no tables choose them and no conditions bound sums,
    unless kernels know of ``borders``. An axis of up to ``across`` points may be the lane although
    it is reduced, where no independent one has neighbours in memory."""
    program = without_counts(program)
    axes = sorted({cycle.axis for cycle in cycles(program)})
    if not axes:
        raise InputError("no stage reads itself one step before")
    if len(axes) > 1:
        raise InputError(f"stages step along {' and '.join(axes)}; allowed: one axis")
    (position,) = axes
    directions = {cycle.direction for cycle in cycles(program)}
    if len(directions) > 1:
        raise InputError(f"some steps along {position} go up, others down; allowed: one direction")
    if program.conditions and not borders:
        raise InputError(f"'where {program.conditions[0]}' bounds a reduction; allowed: none")
    stages = tuple(_unbounded(program, stage) for stage in _stages(program))
    bound = {axis for stage in stages for axis in (*stage.over, *_crossing(program, stage))}
    free = [axis for axis in row_axes(program) if axis not in bound]
    leaving = {axis for stage in stages for axis in _leaving(program, stage)}
    first = program.outputs[0]
    steps = steps_of_output(first, program.stage[first.name].axes)
    lanes = [axis for axis in free if axis not in leaving]
    lane = max(lanes, key=lambda axis: (steps.step(axis) == 1, program.extent[axis]), default="")
    reduced = ""
    if not lane or steps.step(lane) != 1:
        reduced = _reduced_lane(program, stages, {position, *leaving}, across)
    if reduced:
        lane = reduced
        stages = tuple(part for stage in stages for part in _apart(program, stage, lane))
        program = replace(program, stages=stages)
    rows = tuple(axis for axis in free if axis != lane)
    view = SteppedView(program, rows, position, lane, stages, directions.pop(), bool(reduced))
    for stage in stages:
        _check_stage(view, stage)
    for read, places in view.places.items():
        if places.gathers and not borders:
            raise InputError(f"entries of a table choose {read}")
    for entry, places in view.entries.items():
        if places.gathers:
            raise InputError(f"entries of a table choose {entry}, which is one of a table")
    for read, forms in view.borders.items():
        if any(atom.reads for form in forms for atom, _ in form.terms):
            raise InputError(f"{read} may leave its array by entries of a table; allowed: by axes")
    if view.borders and not borders:
        raise InputError(f"{next(iter(view.borders))} may leave its array; allowed: a stage")
    return view


def _reduced_lane(
    program: Program, stages: Sequence[Stage], others: Collection[str], most: int
) -> str:
    """Return the axis, of up to so many points, that stages reduce and read each other along, and
    along which most operands have neighbours in memory; empty if there is none."""
    crossing = {axis for stage in stages for axis in _crossing(program, stage)}
    over = {axis for stage in stages for axis in stage.over} - crossing - {*others}
    reads = {read for stage in stages for read in stage.body.value_reads}
    known = [(program.operand[r.name], r) for r in reads if r.name in program.operand]

    def neighbours(axis: str) -> int:
        places = ((o, steps_of_read(o, replace(r, outside=None))) for o, r in known)
        return sum(o.size for o, steps in places if steps.step(axis) == 1)

    return max(
        (axis for axis in sorted(over) if 1 < program.extent[axis] <= most),
        key=neighbours,
        default="",
    )


def _apart(program: Program, stage: Stage, lane: str) -> Iterator[Stage]:
    """Yield a stage that reduces lanes and more as two, of which the second reduces lanes alone."""
    if lane not in stage.over or len(stage.over) == 1:
        yield stage
        return
    name = next(n for n in (f"{stage.name}_lane{i}" for i in count()) if n not in program.stage)
    over, axes = (tuple(a for a in stage.over if a != lane)), (*stage.axes, lane)
    yield replace(stage, name=name, axes=axes, over=over)
    yield replace(stage, over=(lane,), body=Read(name, tuple(map(AxisValue, axes))))


def _unbounded(program: Program, stage: Stage) -> Stage:
    """Return a sum whose terms are 0 where conditions leave them out. They may read operands
    beyond their borders there."""
    conditions = program.bounding(stage)
    if not conditions:
        return stage
    if stage.reducer != "sum":
        raise InputError(f"'where {conditions[0]}' bounds a {stage.reducer}; allowed: sums")
    body = _inside(program, stage.body)
    for condition in conditions:
        body = Select(condition, body, ZERO)
    return replace(stage, body=body)


def _inside(program: Program, node: Expression) -> Expression:
    """Return an expression whose reads of operands are 0 beyond their borders."""
    node = node.with_children(tuple(_inside(program, child) for child in node.children))
    if isinstance(node, Read) and node.outside is None and node.name in program.operand:
        return replace(node, outside=0.0) if any(_borders(program, node)) else node
    return node


def _leaving(program: Program, stage: Stage) -> Iterator[str]:
    """Yield the axes along which a stage reads operands beyond their borders, or by tables."""
    for read in stage.body.value_reads:
        for index in read.indices:
            for entry in index.reads:
                yield from entry.axes
        if read.outside is not None and read.name in program.operand:
            for form in _borders(program, read):
                for atom, _ in form.terms:
                    yield from atom.axes


def _borders(program: Program, read: Read) -> Iterator[Affine]:
    """Yield what is not negative where a read is of its array, and may be negative elsewhere."""
    bounds = Bounds.under((), program.extent, entry_ranges(program))
    for index, extent in zip(read.indices, program.operand[read.name].shape, strict=True):
        low, high = bounds.of(index)
        if low < 0:
            yield affine(index)
        if high >= extent:
            yield Affine((), extent - 1) - affine(index)


def _stages(program: Program) -> tuple[Stage, ...]:
    """Return the stages that are computed, with maps in the place of what reads them."""
    reads = (read for stage in program.stages for read in stage.body.value_reads)
    kept = {output.name for output in program.outputs}
    kept |= {read.name for read in reads if read.outside is not None}
    return tuple(
        replace(stage, body=inlined(program, stage.body, lambda s: s.name not in kept))
        for stage in program.stages
        if stage.reducer or stage.name in kept
    )


def _crossing(program: Program, stage: Stage) -> Iterator[str]:
    """Yield the axes along which a stage reads others elsewhere, and those that are read there."""
    for read in stage.body.value_reads:
        if read.name in program.stage:
            for axis, index in zip(program.stage[read.name].axes, read.indices, strict=True):
                if index != AxisValue(axis):
                    yield from (axis, *index.axes)


def _check_stage(view: SteppedView, stage: Stage) -> None:
    """Refuse what no step computes."""
    if view.position not in stage.axes:
        raise InputError(f"{stage.name} has no axis {view.position}, along which steps go")
    if stage.reducer not in (None, *REDUCERS):
        raise InputError(f"{stage.name} is a {stage.reducer}; allowed: {', '.join(REDUCERS)}")
    for read in stage.body.value_reads:
        other = view.program.stage.get(read.name)
        if other is not None:
            _check_read(view, stage, read, other)


def _check_read(view: SteppedView, stage: Stage, read: Read, other: Stage) -> None:
    """Refuse a read of a stage elsewhere than at plain axes of this step, or of the one before."""
    before = view.is_before(read)
    for axis, index in zip(other.axes, read.indices, strict=True):
        if axis == view.position:
            if step_of(index, axis) != (-view.direction if before else 0):
                raise InputError(f"{read} is of neither this step nor the one before")
        elif not isinstance(index, AxisValue) or view.extent(index.name) > view.extent(axis):
            raise InputError(f"{read} is read at '{index}'; allowed: an axis of {read.name}")
    if read.outside is not None and not before:
        raise InputError(f"{read} may leave its array; allowed: at the first step")
    if before and view.first[read.name] != read.outside:
        raise InputError(f"{read.name} begins with {view.first[read.name]:g}, and in {read}")
