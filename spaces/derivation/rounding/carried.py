"""Bounds of a sum that a state is carried for, in time that is linear in the positions.

Terms are those of :mod:`spaces.derivation.recurrent.view`. Positions are taken in blocks: pairs
within a block are looked at one by one, and all terms before it are one state, scaled by the
greatest exponent so far. A power of a far term is the product of those that take it to the end of
its block, from block to block, and to the position that reads it. Each may be off by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from tilewright.spaces.derivation.recurrent.view import Recurrence, cached_recurrence
from tilewright.spaces.derivation.rounding.approximate import Approximate
from tilewright.spaces.derivation.rounding.approximate_arrays import ApproximateArrays
from tilewright.spaces.derivation.rounding.carried_factors import (
    Side,
    pairs_read,
    states_read,
    terms_added,
)
from tilewright.spaces.derivation.rounding.carried_powers import Powers, Scaled, Unscaled
from tilewright.spaces.derivation.rounding.reductions import (
    Terms,
    dtypes_of_factors,
    sum_of_terms,
)
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import Expression
from tilewright.spaces.numerics.adding import drift_of_sum, error_of_sum

BLOCK = (32, 8, 1)
"""Positions of a block where no power has an axis of the state, one, or both: these are factors of
each pair of positions."""
STEP, TERMS = 1 << 10, 32
"""Points that take as long as a block, and terms that a BLAS adds up in the time of one."""


@lru_cache(maxsize=256)
def carried_linearly(program: Program) -> Recurrence | None:
    """Return the program as a recurrence whose bounds take linear time; None if it is none. Where
    factors may be rounded to 16 bits, the bound has squares of sums within terms, which take a
    state of squares."""
    found = cached_recurrence(program)
    if found is None or program.accumulator not in ("", "float32", "float64"):
        return None
    kinds = {program.operand[read.name].dtype for read in found.places}
    return found if kinds <= {"float32", "float64"} else None


def stages_of(view: Recurrence) -> Sequence[Stage]:
    """Return the sum, and the stages that are evaluated beside it: running sums among them, whose
    differences are exponents."""
    program = view.program
    names = {view.name, *(stage.name for stage in view.others)}
    waiting = list(view.decay.sums if view.decay else ())
    while waiting:
        for read in waiting.pop().value_reads:
            if read.name in program.stage and read.name not in names:
                names.add(read.name)
                waiting.append(program.stage[read.name].body)
    return [stage for stage in program.stages if stage.name in names]


def block_of(view: Recurrence) -> int:
    """Return how many positions are looked at in pairs."""
    both = any(
        view.lane in factor.axes and not factor.axes.isdisjoint(view.inner)
        for factor in (*view.added, *view.read)
    )
    powers = frozenset[str]() if view.decay is None else view.decay.axes
    inner, lane = not powers.isdisjoint(view.inner), view.lane in powers
    return BLOCK[2] if both else BLOCK[inner + lane]


def axes_of_pairs(view: Recurrence) -> tuple[str, ...]:
    """Return the axes whose points share what pairs of positions have: the position, and lanes if
    these have no powers of their own."""
    lane = view.decay is None or view.lane not in view.decay.axes
    return (view.position, view.lane) if lane and block_of(view) > 1 else (view.position,)


def points_of_state(view: Recurrence, sizes: Mapping[str, int]) -> int:
    """Estimate the points of other stages that take as long as the sum, whose axes have these
    ``sizes``."""
    block = block_of(view)

    def count(*axes: str) -> int:
        return prod(sizes[axis] for axis in axes)

    passed = count(*view.rows, view.position, *view.inner, view.lane)
    pairs = count(*view.rows, view.position) * block // 2
    if view.decay is not None:
        pairs *= count(*(a for a in (*view.inner, view.lane) if a in view.decay.axes))
    return points_of_steps(view) + (passed if block == 1 else passed // TERMS) + pairs


def points_of_steps(view: Recurrence) -> int:
    """Estimate the points that take as long as walking along all positions, however few rows there
    are."""
    return STEP * (view.extent(view.position) // block_of(view))


def carried_sum(
    view: Recurrence,
    meaning: ApproximateArrays,
    kept: ApproximateArrays,
    pause: Callable[[], None] = lambda: None,
) -> Approximate:
    """Return the sum at all positions, with the axes of its stage.

    ``meaning`` is of points along ``view.rows``, the position, ``view.inner`` and the lane, in this
    order; ``kept`` of points along the axes of the stage. ``pause`` is called now and then.
    """
    stage = view.program.stage[view.name]
    with np.errstate(all="ignore"):
        value, size, off = _Walk.of(view, meaning).totals(pause)
    axes = [*view.rows, view.position, view.lane]
    sizes = [meaning.axes[axis].size for axis in axes]
    order = [axes.index(axis) for axis in stage.axes if axis in axes]
    shape = [kept.axes[axis].size for axis in stage.axes]
    value, size, off = (
        found.reshape(sizes).transpose(order).reshape(shape) for found in (value, size, off)
    )
    off = off + size * _share_of_merged(view, meaning.rules.sums_in)
    finite = np.where(size < np.inf, size, 0.0)
    return sum_of_terms(view.program, stage, kept, Terms([value], [size], [off], finite=finite))


def _share_of_merged(view: Recurrence, kind: str) -> float:
    """Bound the error of sums within terms, relative to the sum of all magnitudes."""
    share = 0.0
    for stage in view.merged:
        names, terms = dtypes_of_factors(view.program, stage), view.extent(*stage.over)
        share += sum(error_of_sum(terms, kind, names, 1.0, 1.0))
        share += drift_of_sum(terms, kind, names)
    return share


@dataclass(frozen=True)
class _Walk:
    """The factors that are ``added`` and ``read`` at all positions, in order, and their powers."""

    view: Recurrence
    shape: Sequence[int]
    added: Side
    read: Side
    powers: Unscaled | Scaled

    @staticmethod
    def of(view: Recurrence, meaning: ApproximateArrays) -> _Walk:
        """Evaluate all factors."""
        sizes = {axis: meaning.axes[axis].size for axis in meaning.axes}
        groups = (view.rows, (view.position,), view.inner, (view.lane,))
        shape = [prod(sizes[axis] for axis in group) for group in groups]

        def values(node: Expression) -> tuple[np.ndarray, np.ndarray]:
            found = node.fold(meaning)
            both = meaning.numbers.wide(found.value), np.asarray(meaning.radius(found))
            value, radius = (_grouped(array, sizes, groups) for array in both)
            if view.backwards:
                value, radius = value[:, ::-1], radius[:, ::-1]
            return value, radius

        kind, decay = meaning.rules.kind, view.decay
        powers = Unscaled(view) if decay is None else Scaled(view, decay, values, kind)
        added = Side.of([values(node) for node in view.added], shape)
        return _Walk(view, shape, added, Side.of(list(map(values, view.read)), shape), powers)

    def totals(self, pause: Callable[[], None]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sums of terms, of their magnitudes, and of how far they may be off, at each
        row, position and lane. Where a term is not finite, all magnitudes are infinite."""
        rows, positions, inner, lanes = self.shape
        found = np.empty((3, rows, positions, lanes))
        states = _States(*np.zeros((4, rows, inner, lanes)))
        added, count = self.added.finite, block_of(self.view)
        for start in range(0, positions, count):
            pause()
            part = slice(start, min(start + count, positions))
            powers = self.powers.block(part)
            read, terms = self.read.cut(part), added.cut(part)
            found[:, :, part] = states.read(read, terms, powers)
            states = states.moved(terms, powers)
        finite = np.logical_and.accumulate(self.added.most.is_finite, 1)
        if self.view.exclusive:
            finite = np.concatenate([np.ones_like(finite[:, :1]), finite[:, :-1]], 1)
        found[1][~finite] = np.inf
        if self.view.exclusive:  # before the first position there are no terms, whatever reads them
            found[:, :, 0] = 0.0
        if self.view.backwards:
            found = found[:, :, ::-1]
        return found[0], found[1], found[2]


@dataclass(frozen=True)
class _States:
    """States of the terms so far: of values, of magnitudes, of what factors are off, and of what
    powers of magnitudes are off."""

    value: np.ndarray
    size: np.ndarray
    off: np.ndarray
    beside: np.ndarray

    def read(self, q: Side, terms: Side, powers: Powers) -> Sequence[np.ndarray]:
        """Return the totals of the positions of a block."""
        pairs, weight = powers.pairs, powers.read.value
        most = self.size + self.off
        value = states_read(q.value, weight, self.value) + pairs_read(
            q.value, pairs.value, terms.value
        )
        size = states_read(q.size, weight, self.size) + pairs_read(q.size, pairs.value, terms.size)
        off = np.zeros_like(size)
        for each in terms.off:
            off += pairs_read(q.size, pairs.value, each)
        if terms.off:
            off += states_read(q.size, weight, self.off)
        for each in q.off:
            off += states_read(each, weight, most) + pairs_read(each, pairs.value, terms.most)
        if pairs.off is not None and powers.read.off is not None:
            off += states_read(q.most, weight, self.beside) + pairs_read(
                q.most, pairs.off, terms.most
            )
            off += states_read(q.most, powers.read.off, most + self.beside)
        return value, size, off

    def moved(self, terms: Side, powers: Powers) -> _States:
        """Return the states at the end of a block."""
        kept, weight = powers.kept, powers.added.value
        off, beside = kept.value * self.off, kept.value * self.beside
        for each in terms.off:
            off = off + terms_added(each, weight)
        if kept.off is not None and powers.added.off is not None:
            beside = beside + kept.off * (self.size + self.off + self.beside)
            beside = beside + terms_added(terms.most, powers.added.off)
        return _States(
            kept.value * self.value + terms_added(terms.value, weight),
            kept.value * self.size + terms_added(terms.size, weight),
            off,
            beside,
        )


def _grouped(
    array: np.ndarray, sizes: dict[str, int], groups: Sequence[Sequence[str]]
) -> np.ndarray:
    """Return an array whose axes, or those that differ along some axis of their group, are one
    for each group."""
    axes = [axis for group in groups for axis in group]
    array = array.reshape((1,) * (len(axes) - array.ndim) + array.shape)
    shape, first = [], 0
    whole = list(array.shape)
    for group in groups:
        own = array.shape[first : first + len(group)]
        if prod(own) > 1:
            whole[first : first + len(group)] = [sizes[axis] for axis in group]
        shape.append(prod(whole[first : first + len(group)]))
        first += len(group)
    return np.broadcast_to(array, whole).reshape(shape)
