"""Find reductions over ranges: a sorted table, or pointers, say where the entries of a row lie.

``row[e] == r`` with a table ``row`` that never falls holds for neighbours ``e`` alone, and so does
``ptr[r] <= e and e < ptr[r + 1]``. A reduction over ``e`` under such conditions is one over a range
for each ``r``: all rows together have no more points than there are entries. Stages that only such
reductions read are needed at the entries of their rows alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, prod

import numpy as np

from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import (
    MIRRORED,
    AxisValue,
    Binary,
    Comparison,
    Expression,
    Number,
    Read,
)

ENTRIES = "."
"""The name of the dimension along which the entries of all rows lie, one row after the other."""


@dataclass(frozen=True)
class Range:
    """The values of the axis ``entry`` that belong to each value of the axis ``row``.

    ``table`` is the operand that says so: the row of each entry, or, if ``pointers``, where each
    row's entries begin. ``conditions`` are those that hold in the range alone.
    """

    row: str
    entry: str
    table: str
    pointers: bool
    conditions: tuple[Comparison, ...]


@dataclass(frozen=True)
class Ranges:
    """The ranges of a program's stages by their names: of ``reductions``, and of stages that are
    ``along`` entries, for they are read at these alone."""

    reductions: Mapping[str, Range]
    along: Mapping[str, Range]

    def of(self, stage: Stage) -> Range | None:
        """Return the range by which a stage is evaluated, if there is one."""
        return self.reductions.get(stage.name) or self.along.get(stage.name)


@lru_cache(maxsize=256)
def ranges(program: Program) -> Ranges:
    """Find the ranges of a program; stages that are computed step by step have none."""
    if cycles(program):
        return Ranges({}, {})
    found = {s.name: own for s in program.stages if (own := range_of(program, s)) is not None}
    if not found:
        return Ranges({}, {})
    along: dict[str, Range] = {}
    outputs = {output.name for output in program.outputs}
    for stage in reversed(program.stages):
        readers = _readers(program, stage)
        each = {found.get(reader.name) or along.get(reader.name) for reader, _ in readers}
        own = next(iter(each)) if len(each) == 1 else None
        if own is not None and stage.name not in outputs and _is_along(stage, own, readers):
            along[stage.name] = own
    return Ranges(found, along)


def pointers_of(program: Program) -> dict[str, str]:
    """Map each operand that points to where rows begin to the axis of their entries."""
    known = ranges(program).reductions.values()
    return {own.table: own.entry for own in known if own.pointers}


def range_of(program: Program, stage: Stage) -> Range | None:
    """Return the range that the conditions of a reduction make of one of its axes; None if they
    make none."""
    if stage.reducer is None or (REDUCERS[stage.reducer].argument and len(stage.over) > 1):
        return None
    return range_among(program, program.bounding(stage), stage.axes, stage.over)


def range_among(
    program: Program,
    conditions: Collection[Comparison],
    rows: Collection[str],
    entries: Collection[str],
) -> Range | None:
    """Return the range that some ``conditions`` make of one of the axes ``entries``, for each value
    of one of ``rows``; None if they make none."""
    for entry in entries:
        places = [(c, _place(program, c, entry)) for c in conditions]
        known = [(c, place) for c, place in places if place and place.row in rows]
        for condition, place in known:
            if place.kind == "==":
                return Range(place.row, entry, place.table, False, (condition,))
        for first, low in known:
            for last, high in known:
                if (low.kind, high) == ("first", _Place("last", low.table, low.row)):
                    return Range(low.row, entry, low.table, True, (first, last))
    return None


@dataclass(frozen=True)
class _Place:
    """A condition on an entry: it is in a ``row`` (``==``), or not before the ``first`` one of the
    row, or not behind its ``last`` one."""

    kind: str
    table: str
    row: str


def _place(program: Program, condition: Comparison, entry: str) -> _Place | None:
    operator, left, right = condition.operator, condition.left, condition.right
    both = ((operator, left, right), (MIRRORED[operator], right, left))
    for way, one, other in both:
        match way, one, other:
            case "==", Read(table, (AxisValue(at),), None), AxisValue(row) if at == entry != row:
                return _sorted_place(program, _Place("==", table, row))
            case "<=", Read(table, (AxisValue(row),), None), AxisValue(at) if at == entry != row:
                return _sorted_place(program, _Place("first", table, row))
            case "<", AxisValue(at), Read(table, (index,), None) if at == entry:
                before = _before(index)
                if before is not None and before != entry:
                    return _sorted_place(program, _Place("last", table, before))
    return None


def _sorted_place(program: Program, place: _Place) -> _Place | None:
    """Return a place that a table of one dimension gives that never falls; None for others."""
    operand = program.operand.get(place.table)
    rises = operand and operand.drawn and operand.drawn.sorted and len(operand.shape) == 1
    return place if rises else None


def _before(index: Expression) -> str | None:
    """Return the axis ``r`` of the index ``r + 1``."""
    match index:
        case Binary("+", AxisValue(row), Number(1)) | Binary("+", Number(1), AxisValue(row)):
            return row
    return None


def _readers(program: Program, stage: Stage) -> list[tuple[Stage, Read]]:
    return [
        (other, read)
        for other in program.stages
        for expression in (other.body, *program.bounding(other))
        for read in expression.reads
        if read.name == stage.name
    ]


def _is_along(stage: Stage, own: Range, readers: Sequence[tuple[Stage, Read]]) -> bool:
    """Tell whether readers take the elements of a stage that belong to the entries of a range."""
    plain = tuple(map(AxisValue, stage.axes))
    return (
        own.entry in stage.axes
        and not {own.entry, own.row} & {*stage.over}
        and all(read.indices == plain for _, read in readers)
    )


# -- the points ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """The entries of some ``rows``, row by row: each row has ``counts`` entries from ``low`` on.

    A walk without entries has one point, the first entry for the first row, which counts for none.
    """

    range: Range
    rows: np.ndarray
    low: np.ndarray
    counts: np.ndarray

    @staticmethod
    def of(range_: Range, rows: np.ndarray, low: np.ndarray, high: np.ndarray, most: int) -> Walk:
        """Return the walk from each row's ``low`` to before its ``high``, as far as these are
        entries, of which there are ``most``."""
        first = np.clip(low, 0, most)
        return Walk(range_, rows, first, np.clip(high, first, most) - first)

    @cached_property
    def starts(self) -> np.ndarray:
        """The number of the first point of each row, and that of all points."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def size(self) -> int:
        """All points."""
        return max(1, int(self.starts[-1]))

    @property
    def is_empty(self) -> bool:
        """Tell whether no row has an entry."""
        return not self.starts[-1]

    @property
    def values(self) -> dict[str, np.ndarray]:
        """The row and the entry of each point."""
        if self.is_empty:
            return {self.range.row: self.rows[:1], self.range.entry: np.zeros(1, np.int64)}
        shift = np.repeat(self.low - self.starts[:-1], self.counts)
        rows = np.repeat(self.rows, self.counts)
        return {self.range.row: rows, self.range.entry: shift + np.arange(self.size)}

    def cut(self, part: slice) -> Walk:
        """Return the walk of some of the rows."""
        return Walk(self.range, self.rows[part], self.low[part], self.counts[part])

    def points(self, part: slice) -> slice:
        """Return the numbers of the points of some of the rows."""
        first, end = int(self.starts[part.start]), int(self.starts[part.stop])
        if first == end:
            first = min(first, self.size - 1)
            end = first + 1
        return slice(first, end)

    def parts(self, most: int) -> Iterator[slice]:
        """Yield the rows in parts of about ``most`` points, or of one row."""
        first = 0
        while first < self.rows.size:
            end = int(np.searchsorted(self.starts, self.starts[first] + most, "right")) - 1
            end = min(max(end, first + 1), first + max(most, 1), self.rows.size)
            yield slice(first, end)
            first = end

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return what each point has of ``values``, one for each row."""
        return values[:1] if self.is_empty else np.repeat(values, self.counts, axis=0)

    def reduced(self, combine: np.ufunc, values: np.ndarray, identity: float) -> np.ndarray:
        """Combine ``values``, one for each point, into one for each row."""
        found = np.full((self.rows.size, *values.shape[1:]), identity, values.dtype)
        some = np.flatnonzero(self.counts)
        if some.size:
            found[some] = combine.reduceat(values, self.starts[some], axis=0)
        return found


def expected_points(program: Program, range_: Range, rows: int) -> int:
    """Return how many points so many rows have, on average over all rows."""
    whole = program.extent[range_.row]
    return max(1, ceil(program.extent[range_.entry] * rows / whole))


def points_of(program: Program, stage: Stage) -> int:
    """Count the points of a stage: those of its axes, or of its range and the other axes."""
    found = ranges(program).of(stage)
    axes = [a for a in (*stage.axes, *stage.over) if found is None or a != found.row]
    return prod(program.shape(tuple(axes)))
