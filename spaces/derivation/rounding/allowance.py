"""Compute the allowed output of a program: an interval for each element of each output.

Values and bounds go through the program together, stage by stage. Each operation rounds once
(:mod:`spaces.numerics.interval`), and sums lose accuracy as
:func:`~spaces.numerics.adding.error_of_sum` says. Values of integers alone are exact. So are places
of ``argmax`` and ``argmin``, unless rounding decides between elements: if two may be the best, any
place from the first to the last of them is allowed; if more may be, any place is. Compare by
:func:`spaces.numerics.allowance.agrees`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from tilewright.spaces.derivation.recurrent.view import Recurrence
from tilewright.spaces.derivation.rounding.approximate import Approximate, bounds
from tilewright.spaces.derivation.rounding.approximate_arrays import ApproximateArrays, over
from tilewright.spaces.derivation.rounding.carried import (
    carried_linearly,
    carried_sum,
    stages_of,
)
from tilewright.spaces.derivation.rounding.ranged_arrays import (
    RangedArrays,
    along_of,
    ranged_piece,
    walk_in,
)
from tilewright.spaces.derivation.rounding.reduced_arrays import (
    reduced,
    running,
    summed,
    whole_body,
)
from tilewright.spaces.derivation.rounding.rows import Places, Rows, grid
from tilewright.spaces.derivation.rounding.signs import with_signs
from tilewright.spaces.derivation.rounding.stepped import add_steps
from tilewright.spaces.dtypes import DType
from tilewright.spaces.language.cycles import Cycle, cycles
from tilewright.spaces.language.evaluation import largest_array
from tilewright.spaces.language.prefixes import divided_axis, prefix_of
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranged import Layout, Parts, parts_of
from tilewright.spaces.language.ranges import Range, Walk, ranges
from tilewright.spaces.numerics.interval import Interval, Rules
from tilewright.spaces.numerics.numbers import Arrays

CHUNK = 1 << 19
"""Elements that are evaluated at a time, as far as the axes that a stage keeps allow."""


def allowed(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    rows: Rows | None = None,
    pause: Callable[[], None] = lambda: None,
    known: Mapping[str, Places] | None = None,
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the least and the greatest value that each element of each output may have, as float64
    arrays by the output's name. Both are NaN where the value must be; they are infinite where it
    may be anything. Of ``rows`` alone, if there are any. ``pause`` is called now and then, and may
    raise to end the work. ``inputs`` may be cut to what is read (:func:`..reads.places_read`):
    ``known`` says to which places."""
    program = with_signs(program)
    context, arrays = _begun(program, inputs, rows, pause, known)
    with np.errstate(all="ignore"):
        for stage in context.stages:
            context.add(stage, arrays)
        return {o.name: _stored(context.rules, arrays[o.name], o.element) for o in program.outputs}


def computed(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    rows: Rows | None = None,
    known: Mapping[str, Places] | None = None,
) -> dict[str, np.ndarray]:
    """Evaluate a program with each stage rounded to the dtype that kernels compute in; values that
    are too large for it become infinite. Parameters are those of :func:`allowed`.
    """
    context, arrays = _begun(program, inputs, rows, lambda: None, known)
    with np.errstate(all="ignore"):
        for stage in program.stages:
            context.add(stage, arrays)
            found = np.asarray(arrays[stage.name].value)
            if found.dtype.kind == "f":
                found = found.astype(program.computed_in).astype(np.float64)
            arrays[stage.name] = Approximate(found)
    return {output.name: arrays[output.name].value for output in program.outputs}


def evaluated(
    program: Program, inputs: Mapping[str, np.ndarray], rows: Rows
) -> dict[str, ApproximateArrays]:
    """Evaluate each stage's body, and the conditions that bound it, at all points of these rows, or
    at the entries of its range; the result is a meaning of expressions.
    """
    context, arrays = _begun(program, inputs, rows, lambda: None, None)
    found = {}
    with np.errstate(all="ignore"):
        for stage in program.stages:
            context.add(stage, arrays)
            found[stage.name] = context.meaning(stage, arrays)
    return found


def _begun(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    rows: Rows | None,
    pause: Callable[[], None],
    known: Mapping[str, Places] | None,
) -> tuple[_Context, dict[str, Approximate]]:
    """Make the context that all stages share, and the operands."""
    rows = rows or Rows()
    rules = Rules(Arrays(), program.computed_in, absorbs=True, sums=program.accumulator)
    places = {**rows.places(program), **(known or {})}
    given = {
        o.name: o.plain(inputs[o.name]) if o.coded else inputs[o.name] for o in program.operands
    }
    arrays = {name: Approximate(np.asarray(array)) for name, array in given.items()}
    return _Context(program, rules, rows, places, pause), arrays


@dataclass(frozen=True)
class _Context:
    """Data that all stages share. ``places`` names the places where stages and operands are known,
    if these are not known everywhere.
    """

    program: Program
    rules: Rules
    rows: Rows
    places: Mapping[str, Places]
    pause: Callable[[], None]

    @cached_property
    def carried(self) -> Recurrence | None:
        """The sum that a state is carried for, where all its positions are evaluated."""
        view = carried_linearly(self.program)
        return None if view is None or view.position in self.rows.which else view

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages that are evaluated, without those that a state stands for."""
        return self.program.stages if self.carried is None else stages_of(self.carried)

    def add(self, stage: Stage, arrays: dict[str, Approximate]) -> None:
        """Add a stage to the arrays that are known: with all of its cycle, if it is in one."""
        if stage.name in arrays:
            return
        for cycle in cycles(self.program):
            if stage.name in cycle.stages:
                self._steps(cycle, arrays)
                return
        arrays[stage.name] = self.stage(stage, arrays)

    def _steps(self, cycle: Cycle, arrays: dict[str, Approximate]) -> None:
        """Add the stages of a cycle, step by step."""
        every = [self.program.stage[name] for name in cycle.stages]
        values = {stage.name: self.rows.values(self.program, stage) for stage in every}
        meaning = ApproximateArrays(self.rules, arrays, {}, self.program, self.places)
        add_steps(cycle, meaning, values, arrays, _piece, self.pause)

    def stage(self, stage: Stage, arrays: Mapping[str, Approximate]) -> Approximate:
        """Return the stage in pieces along the longest axis that it keeps."""
        if self.carried is not None and stage.name == self.carried.name:
            return self._carried(self.carried, arrays)
        if (found := ranges(self.program).of(stage)) is not None:
            return self._ranged(stage, found, arrays)
        values = self.rows.values(self.program, stage)
        sizes = [values[axis].size for axis in stage.axes]
        by_axis = {axis: own.size for axis, own in values.items()}
        longest = divided_axis(self.program, stage, by_axis)
        size = sizes[longest] if sizes else 1
        step = max(1, CHUNK * size // largest_array(self.program, stage, by_axis))
        pieces = []
        for start in range(0, size, step):
            self.pause()
            part = dict(values)
            if sizes:
                part[stage.axes[longest]] = values[stage.axes[longest]][start : start + step]
            meaning = ApproximateArrays(self.rules, arrays, grid(part), self.program, self.places)
            pieces.append(_piece(self.program, stage, meaning))
        return _joined(pieces, longest) if len(pieces) > 1 else pieces[0]

    def _carried(self, view: Recurrence, arrays: Mapping[str, Approximate]) -> Approximate:
        """Return the sum that a state is carried for."""
        known = self.rows.values(self.program, self.program.stage[view.name])
        whole = {axis: np.arange(self.program.extent[axis]) for axis in view.inner}
        axes = (*view.rows, view.position, *view.inner, view.lane)
        meaning, kept = (
            ApproximateArrays(self.rules, arrays, grid(points), self.program, self.places)
            for points in (
                {axis: {**known, **whole}[axis] for axis in axes},
                {axis: known[axis] for axis in self.program.stage[view.name].axes},
            )
        )
        return carried_sum(view, meaning, kept, self.pause)

    def meaning(self, stage: Stage, arrays: Mapping[str, Approximate]) -> ApproximateArrays:
        """Return the meaning of expressions at all points of a stage."""
        if (found := ranges(self.program).of(stage)) is not None:
            walk = self.walk(found, arrays)
            return self.ranged_meaning(stage, walk, slice(0, walk.rows.size), {}, arrays)
        points = grid(self.rows.values(self.program, stage))
        return ApproximateArrays(self.rules, arrays, points, self.program, self.places)

    def _ranged(self, stage: Stage, found: Range, arrays: Mapping[str, Approximate]) -> Approximate:
        """Return a stage over a range of entries, in pieces of some rows."""
        layout, values = Layout.of(stage, found), self.rows.values(self.program, stage)
        sizes = {axis: values[axis].size for axis in (*layout.kept, *layout.inner)}
        walk, along = self.walk(found, arrays), stage.name in ranges(self.program).along
        by_rows: dict[tuple[int, int], list[Approximate]] = {}
        across = 0
        for rows, parts in parts_of(walk, layout, sizes, CHUNK, along):
            self.pause()
            meaning = self.ranged_meaning(stage, walk, rows, parts, arrays)
            piece = ranged_piece(self.program, stage, meaning)
            by_rows.setdefault((rows.start, rows.stop), []).append(piece)
            across = next((1 + layout.kept.index(axis) for axis in parts), across)
        pieces = [_joined(own, across) if len(own) > 1 else own[0] for own in by_rows.values()]
        whole = _joined(pieces, 0) if len(pieces) > 1 else pieces[0]
        if along:
            return whole
        place = stage.axes.index(found.row)
        return over(whole, lambda array: np.moveaxis(array, 0, place))

    def walk(self, found: Range, arrays: Mapping[str, Approximate]) -> Walk:
        """Return the entries of all rows that are evaluated."""
        whole = np.arange(self.program.extent[found.row])
        rows = self.rows.which.get(found.row, whole)
        return walk_in(self.program, found, rows, arrays, self.places)

    def ranged_meaning(
        self,
        stage: Stage,
        walk: Walk,
        rows: slice,
        parts: Parts,
        arrays: Mapping[str, Approximate],
    ) -> RangedArrays:
        """Return the meaning of expressions at the entries of some of the rows."""
        layout, cut = Layout.of(stage, walk.range), walk.cut(rows)
        values = self.rows.values(self.program, stage)
        sizes = {
            axis: values[axis][parts.get(axis, slice(None))]
            for axis in (*layout.kept, *layout.inner)
        }
        return RangedArrays(
            self.rules,
            arrays,
            layout.grid(sizes, cut.size),
            self.program,
            self.places,
            walk=cut,
            points=walk.points(rows),
            along=along_of(self.program, ranges(self.program), walk.range),
            parts=parts,
        )


def _stored(rules: Rules, found: Approximate, element: DType) -> tuple[np.ndarray, np.ndarray]:
    low, high = rules.stored(bounds(found, rules.numbers), element)
    shape = found.value.shape
    return np.broadcast_to(low, shape), np.broadcast_to(high, shape)


def _joined(pieces: Sequence[Approximate], dimension: int) -> Approximate:
    value = np.concatenate([p.value for p in pieces], axis=dimension)
    intervals = [over(p, lambda values: values).interval for p in pieces]
    if None in intervals:
        return Approximate(value)
    ends = ([getattr(i, end) for i in intervals] for end in ("low", "high", "free"))
    return Approximate(value, Interval(*(np.concatenate(end, axis=dimension) for end in ends)))


def _piece(program: Program, stage: Stage, meaning: ApproximateArrays) -> Approximate:
    prefix = prefix_of(program, stage)
    if prefix and prefix.reducer != "sum":
        return running(program, stage, meaning, prefix)
    conditions = [] if prefix else [c.fold(meaning).value for c in program.bounding(stage)]
    mask = reduce(np.logical_and, conditions) if conditions else None
    if stage.reducer == "sum":
        return summed(program, stage, meaning, mask)
    return reduced(stage, meaning, mask) if stage.reducer else whole_body(stage, meaning)
