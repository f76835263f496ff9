"""Approximate values of stages over ranges of entries (:mod:`spaces.language.ranges`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.derivation.rounding.approximate import Approximate
from tilewright.spaces.derivation.rounding.approximate_arrays import ApproximateArrays, over
from tilewright.spaces.derivation.rounding.reduced_arrays import Mask, total, whole_body
from tilewright.spaces.derivation.rounding.reductions import (
    ends_of_best,
    is_exact,
    place_of_best,
    product_of_terms,
)
from tilewright.spaces.derivation.rounding.rows import Places
from tilewright.spaces.language.functions import REDUCERS, neutral
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranged import Layout, Parts, best_places, ends
from tilewright.spaces.language.ranges import ENTRIES, Range, Ranges, Walk
from tilewright.spaces.numerics.interval import Interval

NONE = np.iinfo(np.int64).max
"""A place that no entry has."""


@dataclass(frozen=True)
class RangedArrays(ApproximateArrays):
    """Evaluates at the entries of a ``walk``, which share the first dimension of ``axes``.

    Stages of ``along`` have an element for each entry of all rows, and the dimensions there beside
    it; the ``points`` are those of the walk.
    """

    walk: Walk | None = None
    points: slice = field(default_factory=lambda: slice(0))
    along: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: Parts = field(default_factory=dict)

    def axis(self, name: str) -> Approximate:
        """Return the grid's, or the value at each entry."""
        values = self._flat
        return Approximate(values[name] if name in values else self.axes[name])

    def entry(self, name: str, indices: Sequence[Any]) -> tuple[Approximate, Any]:
        """Read along entries what lies along them."""
        if name not in self.along:
            return super().entry(name, indices)
        names, dimensions = list(self.axes), (ENTRIES, *self.along[name])
        own = (self.points, *(self.parts.get(axis, slice(None)) for axis in self.along[name]))
        order = sorted(range(len(own)), key=lambda place: names.index(dimensions[place]))
        shape = [self.axes[axis].size if axis in dimensions else 1 for axis in names]

        def taken(values: np.ndarray) -> np.ndarray:
            return values[own].transpose(order).reshape(shape)

        return self._wide(name, over(self.arrays[name], taken)), True

    def kept(self, stage: Stage) -> ApproximateArrays:
        """Evaluate at the axes that a stage keeps: at its rows, unless it lies along entries."""
        assert self.walk is not None
        layout = Layout.of(stage, self.walk.range)
        rank = 1 + len(layout.kept)
        axes = {a: v.reshape(v.shape[:rank]) for a, v in self.axes.items() if a not in layout.inner}
        if stage.name in self.along:
            return replace(self, axes=axes)
        rows: np.ndarray = self.walk.rows.reshape((-1, *[1] * (rank - 1)))
        own = {self.walk.range.row: rows} | {a: axes[a] for a in layout.kept}
        return ApproximateArrays(self.rules, self.arrays, own, self.program, self.partial)

    def spread(self, stage: Stage, values: np.ndarray) -> np.ndarray:
        """Return ``values`` of a whole stage at the points: for its axes, or along entries."""
        assert self.walk is not None
        if stage.name not in self.along:
            values = self.walk.spread(np.moveaxis(values, stage.axes.index(self.walk.range.row), 0))
        return values.reshape((*values.shape, *[1] * (len(self.axes) - values.ndim)))

    def gathered(self, name: str, mask: np.ndarray) -> np.ndarray:
        """Tell which elements of a stage along entries are read where ``mask`` holds."""
        names, dimensions = list(self.axes), (ENTRIES, *self.along[name])
        shape = tuple(axis.size for axis in self.axes.values())
        others = tuple(d for d, axis in enumerate(names) if axis not in dimensions)
        found = np.asarray(np.broadcast_to(mask, shape).any(axis=others))
        left = [axis for axis in names if axis in dimensions]
        return found.transpose([left.index(axis) for axis in dimensions])

    @property
    def _flat(self) -> dict[str, np.ndarray]:
        assert self.walk is not None
        shape = (-1, *[1] * (len(self.axes) - 1))
        return {axis: own.reshape(shape) for axis, own in self.walk.values.items()}


def walk_in(
    program: Program,
    range_: Range,
    rows: np.ndarray,
    arrays: Mapping[str, Approximate],
    known: Mapping[str, Places],
) -> Walk:
    """Return the entries of ``rows``, by the table as far as it is known."""
    table = np.asarray(arrays[range_.table].value).astype(np.int64)
    places = known.get(range_.table, {}).get(0)
    most = program.extent[range_.entry]
    if places is None:
        return Walk.of(range_, rows, *ends(range_, rows, table), most)
    if range_.pointers:
        low, high = (table[np.searchsorted(places, rows + beyond)] for beyond in (0, 1))
        return Walk.of(range_, rows, low, high, most)
    low, high = (np.append(places, most)[end] for end in ends(range_, rows, table))
    return Walk.of(range_, rows, low, high, most)


def along_of(program: Program, found: Ranges, range_: Range) -> dict[str, Sequence[str]]:
    """Return the dimensions, beside that of entries, of the stages that lie along those of a
    range."""
    return {
        name: Layout.of(program.stage[name], own).kept
        for name, own in found.along.items()
        if own == range_
    }


def ranged_piece(program: Program, stage: Stage, meaning: RangedArrays) -> Approximate:
    """Return a stage at the points of ``meaning``: its first dimension is that of rows, or that of
    entries where it lies along them."""
    assert meaning.walk is not None
    conditions = [c for c in program.bounding(stage) if c not in meaning.walk.range.conditions]
    holding = [condition.fold(meaning).value for condition in conditions]
    mask = reduce(np.logical_and, holding) if holding else None
    if stage.reducer is None:
        return whole_body(stage, meaning)
    if stage.reducer == "sum":
        return _summed(program, stage, meaning, mask)
    return _reduced(program, stage, meaning, mask)


def _combined(
    stage: Stage, meaning: RangedArrays, combine: np.ufunc, values: np.ndarray, identity: float
) -> np.ndarray:
    """Combine within each entry, and over the entries of each row unless the stage lies along
    them."""
    assert meaning.walk is not None
    kept = 1 + len(Layout.of(stage, meaning.walk.range).kept)
    found = combine.reduce(values, axis=tuple(range(kept, values.ndim)))
    if stage.name in meaning.along:
        return np.asarray(found)
    return meaning.walk.reduced(combine, np.asarray(found), identity)


def _summed(program: Program, stage: Stage, meaning: RangedArrays, mask: Mask) -> Approximate:
    shape = [axis.size for axis in meaning.axes.values()]

    def added(terms: Sequence[np.ndarray]) -> np.ndarray:
        product = reduce(np.multiply, map(np.asarray, terms))
        held = product if mask is None else np.where(mask, product, 0)
        return _combined(stage, meaning, np.add, np.broadcast_to(held, shape), 0)

    return total(program, stage, meaning, added)


def _reduced(program: Program, stage: Stage, meaning: RangedArrays, mask: Mask) -> Approximate:
    assert meaning.walk is not None
    reducer = REDUCERS[stage.reducer or ""]
    combine: np.ufunc = reducer.combine  # type: ignore[assignment]
    body = whole_body(stage, meaning)

    def held(values: np.ndarray, outside: float) -> np.ndarray:
        return values if mask is None else np.where(mask, values, outside)

    def combined(values: np.ndarray, outside: float) -> np.ndarray:
        return _combined(stage, meaning, combine, held(values, outside), outside)

    identity = neutral(reducer, body.value.dtype)
    if reducer.argument:
        found = held(body.value, identity)
        place = best_places(meaning.walk, combine, found, mask, identity)
        if is_exact(body):
            return Approximate(place)
        low, high, free = ends_of_best(reducer.name, body)
        ends = held(low, -np.inf), held(high, -np.inf), held(free, False)
        return place_of_best(meaning, place, *_contest(meaning.walk, *ends))
    value = combined(body.value, identity)
    if body.interval is None:
        return Approximate(value)
    if stage.reducer == "prod":
        sizes = np.abs(held(body.value, 1.0)) + held(meaning.radius(body), 0.0)
        most = _combined(stage, meaning, combine, sizes, 1.0)
        terms = prod(program.shape(stage.over))
        return product_of_terms(meaning.kept(stage), value, most, terms)
    free = _combined(stage, meaning, np.logical_or, held(body.interval.free, False), False)
    low, high = (combined(end, reducer.identity) for end in (body.interval.low, body.interval.high))
    return Approximate(value, Interval(low, high, free))


def _contest(
    walk: Walk, low: np.ndarray, high: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tell for each row whether a second entry may be the best one, and the range of places allowed
    then, as of all of a row."""
    near = high >= walk.spread(walk.reduced(np.maximum, low, -np.inf))
    number = walk.reduced(np.add, near.astype(np.int64), 0)
    anything = walk.reduced(np.logical_or, free, False)
    two = (number == 2) & ~anything
    entries = walk.values[walk.range.entry].reshape((-1, *[1] * (near.ndim - 1)))
    first = walk.reduced(np.minimum, np.where(near, entries, NONE), NONE)
    last = walk.reduced(np.maximum, np.where(near, entries, -1), -1)
    unequal = walk.reduced(np.logical_or, near & (low < high), False)
    contested = anything | (number > 1) & unequal
    end = int((walk.low + walk.counts).max(initial=1)) - 1
    return contested, np.where(two, first, 0), np.where(two, last, end)
