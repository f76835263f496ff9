"""Evaluate stages over ranges of entries: one point for each entry, and not for each row and entry.

Points lie along a dimension of their own, :data:`~spaces.language.ranges.ENTRIES`, one row after
the other. A stage that is read at entries alone is an array along that dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from tilewright.spaces.language.evaluation import (
    Arrays,
    Exact,
    factors_of,
    sum_of_products,
)
from tilewright.spaces.language.functions import REDUCERS, Reducer, neutral
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import ENTRIES, Range, Ranges, Walk

Parts = Mapping[str, slice]
"""The values of an axis that are evaluated, by its name; rows by :data:`ENTRIES`."""


@dataclass(frozen=True)
class Layout:
    """The dimensions of a stage's points: all entries, other axes that it keeps, and the axes that
    it reduces within an entry."""

    kept: tuple[str, ...]
    inner: tuple[str, ...]

    @staticmethod
    def of(stage: Stage, range_: Range) -> Layout:
        """Return the dimensions of a stage of a range."""
        own = (range_.row, range_.entry)
        return Layout(
            tuple(axis for axis in stage.axes if axis not in own),
            tuple(axis for axis in stage.over if axis not in own),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All dimensions."""
        return (ENTRIES, *self.kept, *self.inner)

    def grid(self, sizes: Mapping[str, np.ndarray], points: int) -> dict[str, np.ndarray]:
        """Return the values of each axis, and the numbers of points, along dimensions of their
        own."""
        values = {**sizes, ENTRIES: np.arange(points)}
        return {
            axis: values[axis].reshape([-1 if other == axis else 1 for other in self.names])
            for axis in self.names
        }

    def flat(self, values: np.ndarray) -> np.ndarray:
        """Return an array of one value for each point along the first dimension."""
        return values.reshape((-1, *(1 for _ in self.names[1:])))


def parts_of(
    walk: Walk, layout: Layout, sizes: Mapping[str, int], most: int, along: bool
) -> Iterator[tuple[slice, Parts]]:
    """Yield rows and values of the longest other kept axis, in pieces of about ``most`` points. Of
    a stage ``along`` entries, rows without any are left out."""
    inner = prod(sizes[axis] for axis in layout.inner)
    across = prod(sizes[axis] for axis in layout.kept)
    longest = max(layout.kept, key=lambda axis: sizes[axis], default=None)
    for rows in walk.parts(most // (inner * across)):
        points = max(1, int(walk.counts[rows].sum())) * inner * across
        if along and not walk.is_empty and walk.cut(rows).is_empty:
            continue
        if longest is None or points <= most:
            yield rows, {}
            continue
        step = max(1, sizes[longest] * most // points)
        for start in range(0, sizes[longest], step):
            yield rows, {longest: slice(start, min(start + step, sizes[longest]))}


def walk_of(program: Program, range_: Range, table: np.ndarray) -> Walk:
    """Return the entries of all rows, by the table that says where these lie."""
    rows, most = np.arange(program.extent[range_.row]), program.extent[range_.entry]
    return Walk.of(range_, rows, *ends(range_, rows, table), most)


def ends(range_: Range, rows: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the entries of each row begin and end."""
    if range_.pointers:
        return table[rows], table[rows + 1]
    low, high = (np.searchsorted(table, rows, side) for side in ("left", "right"))
    return low, high


@dataclass
class RangedStages:
    """Evaluates the stages of ``found``; the walks of its ranges are made once."""

    program: Program
    found: Ranges
    most: int

    def __post_init__(self) -> None:
        self._walks: dict[Range, Walk] = {}

    def value(self, stage: Stage, range_: Range, values: Arrays) -> np.ndarray:
        """Return a stage, for all of its axes or along entries."""
        if range_ not in self._walks:
            self._walks[range_] = walk_of(self.program, range_, np.asarray(values[range_.table]))
        walk, layout = self._walks[range_], Layout.of(stage, range_)
        sizes = {axis: self.program.extent[axis] for axis in (*layout.kept, *layout.inner)}
        along = stage.name in self.found.along
        out: np.ndarray | None = None
        for rows, parts in parts_of(walk, layout, sizes, self.most, along):
            piece = self._piece(stage, walk, rows, parts, values)
            if out is None:
                first = walk.size if along else walk.rows.size
                out = np.empty((first, *(sizes[axis] for axis in layout.kept)), piece.dtype)
            place = walk.points(rows) if along else rows
            out[(place, *(parts.get(axis, slice(None)) for axis in layout.kept))] = piece
        assert out is not None
        return out if along else np.moveaxis(out, 0, stage.axes.index(range_.row))

    def _piece(
        self, stage: Stage, walk: Walk, rows: slice, parts: Parts, values: Arrays
    ) -> np.ndarray:
        cut, layout = walk.cut(rows), Layout.of(stage, walk.range)
        sizes = {
            axis: np.arange(self.program.extent[axis])[parts.get(axis, slice(None))]
            for axis in (*layout.kept, *layout.inner)
        }
        grid = layout.grid(sizes, cut.size)
        others = [c for c in self.program.bounding(stage) if c not in walk.range.conditions]
        meaning = Exact(
            values,
            grid,
            {**parts, ENTRIES: walk.points(rows)},
            bounded=bool(self.program.bounding(stage)),
            flat={axis: layout.flat(own) for axis, own in cut.values.items()},
            along=self._along(walk.range),
        )
        holding = [condition.fold(meaning) for condition in others]
        mask = reduce(np.logical_and, holding) if holding else None
        shape, kept = [axis.size for axis in grid.values()], 1 + len(layout.kept)
        found = [np.asarray(factor.fold(meaning)) for factor in factors_of(stage)]
        if stage.name in self.found.along and len(found) > 1 and mask is None:
            return sum_of_products(found, grid, kept)
        body = reduce(np.multiply, found) if found else np.asarray(stage.body.fold(meaning))
        body = np.broadcast_to(body, shape)
        if stage.reducer is None:
            return body
        return reduced(REDUCERS[stage.reducer], body, mask, kept, self._walk(stage, cut))

    def _walk(self, stage: Stage, cut: Walk) -> Walk | None:
        return None if stage.name in self.found.along else cut

    def _along(self, range_: Range) -> dict[str, Sequence[str]]:
        """Return the dimensions of the stages that lie along the entries of a range."""
        return {
            name: (ENTRIES, *Layout.of(self.program.stage[name], own).kept)
            for name, own in self.found.along.items()
            if own == range_
        }


def reduced(
    reducer: Reducer, body: np.ndarray, mask: np.ndarray | None, kept: int, walk: Walk | None
) -> np.ndarray:
    """Reduce over the dimensions from ``kept`` on, and over the entries of each row of ``walk``,
    where the mask holds."""
    identity = neutral(reducer, body.dtype)
    if mask is not None:
        body = np.where(mask, body, identity)
    combine: np.ufunc = reducer.combine  # type: ignore[assignment]
    if reducer.argument:
        assert walk is not None
        return best_places(walk, combine, body, mask, identity)
    flat = combine.reduce(body, axis=tuple(range(kept, body.ndim)))
    return flat if walk is None else walk.reduced(combine, flat, identity)


def best_places(
    walk: Walk, combine: np.ufunc, body: np.ndarray, mask: np.ndarray | None, identity: float
) -> np.ndarray:
    """Return the first entry of each row that has the row's best value; zero of no entries."""
    best = walk.spread(walk.reduced(combine, body, identity))
    hits = (body == best) | (body != body)
    if mask is not None:
        hits &= mask
    entries = walk.values[walk.range.entry].reshape((-1, *(1 for _ in body.shape[1:])))
    none = np.iinfo(np.int64).max
    first = walk.reduced(np.minimum, np.where(hits, entries, none), none)
    return np.where(first == none, 0, first)
