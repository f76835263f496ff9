"""Find the address of an element that is read or written, in terms of rows and of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import affine
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class Span:
    """One or several axes of a program as one: neighbours in ``names`` that lie behind each other
    in every array, the last the fastest. ``extent`` is the product of theirs."""

    names: tuple[str, ...]
    extent: int


@dataclass(frozen=True)
class RowAddress:
    """The element of an array at a point, in elements from its start: ``offset``, plus a step for
    each span of rows and of columns, plus entries of integer operands times their steps.

    Those entries are the same along a row; they are reads that have places of their own.
    """

    array: str
    offset: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    gathers: tuple[tuple[Read, int], ...] = ()

    @property
    def by_row(self) -> bool:
        """Tell whether the place differs from row to row."""
        return any(self.rows) or bool(self.gathers)

    @property
    def by_column(self) -> bool:
        """Tell whether the place differs along a row."""
        return any(self.columns)

    @property
    def kind(self) -> str:
        """The kind of its access: per ``element``, per ``row``, per ``column``, or one
        ``number``.
        """
        if self.by_column:
            return "element" if self.by_row else "column"
        return "row" if self.by_row else "number"


@dataclass(frozen=True)
class Steps:
    """The element of an array at a point: steps by axis, before axes become spans."""

    array: str
    offset: int
    by_axis: Mapping[str, int]
    gathers: tuple[tuple[Read, int], ...] = ()

    def step(self, axis: str) -> int:
        """Return the elements from one point of an axis to the next."""
        return self.by_axis.get(axis, 0)

    def along(self, spans: Sequence[Span]) -> tuple[int, ...]:
        """Return the elements from one point of each span to the next."""
        return tuple(self.step(span.names[-1]) if span.names else 0 for span in spans)


def steps_of_read(array: Array, read: Read) -> Steps:
    """Find the place of a read's element; :class:`InputError` if that is no sum of axes and
    entries.
    """
    if read.outside is not None:
        raise InputError(f"{read} may leave its array; rows are read within theirs")
    offset = 0
    by_axis: dict[str, int] = {}
    gathers: dict[Read, int] = {}
    for index, stride in zip(read.indices, array.strides, strict=True):
        form = affine(index)
        offset += stride * form.constant
        for atom, coefficient in form.terms:
            step = stride * coefficient
            if isinstance(atom, AxisValue):
                by_axis[atom.name] = by_axis.get(atom.name, 0) + step
            elif isinstance(atom, Read) and atom.outside is None:
                gathers[atom] = gathers.get(atom, 0) + step
            else:
                raise InputError(f"{read} is read at {atom}; rows are read at plain axes")
    return Steps(array.name, offset, by_axis, tuple(gathers.items()))


def steps_of_output(array: Array, axes: Sequence[str]) -> Steps:
    """Find the place where a stage of these axes is written."""
    return Steps(array.name, 0, dict(zip(axes, array.strides, strict=True)))


def steps_of_rank(over: Sequence[str], extent: Mapping[str, int]) -> Steps:
    """Return the number of an element along the axes ``over``, the last the fastest."""
    ranks = {axis: prod(extent[a] for a in over[i + 1 :]) for i, axis in enumerate(over)}
    return Steps("", 0, ranks)


def from_slowest(
    axes: Iterable[str], found: Sequence[Sequence[Steps]], extent: Mapping[str, int]
) -> list[str]:
    """Return the axes from the slowest in memory to the fastest: as the arrays of most points have
    them, then those of fewer. ``found`` are groups of arrays; of as many points, earlier groups
    count before later ones, and within a group it does not matter which array comes first."""
    axes = list(axes)
    groups: dict[tuple[int, int], list[Steps]] = {}
    for place, group in enumerate(found):
        for steps in group:
            points = prod(extent[axis] for axis in axes if steps.step(axis))
            groups.setdefault((-points, place), []).append(steps)

    def key(axis: str) -> list[list[float]]:
        return [
            sorted((-(abs(s.step(axis)) or inf) for s in groups[g]), reverse=True)
            for g in sorted(groups)
        ]

    return sorted(axes, key=key)


def spans(
    axes: Sequence[str],
    found: Sequence[Steps],
    extent: Mapping[str, int],
    apart: frozenset[str],
) -> tuple[Span, ...]:
    """Return the axes, slowest first, as few spans; those in ``apart`` stay alone. At least one
    span."""
    made: list[Span] = []
    for axis in axes:
        last = made[-1].names[-1] if made else ""
        if (
            made
            and apart.isdisjoint((last, axis))
            and all(s.step(last) == s.step(axis) * extent[axis] for s in found)
        ):
            before = made.pop()
            made.append(Span((*before.names, axis), before.extent * extent[axis]))
        else:
            made.append(Span((axis,), extent[axis]))
    return tuple(made) or (Span((), 1),)


def uses_of_axes(expressions: Iterable[Expression]) -> frozenset[str]:
    """Return the axes whose values count, beyond saying where an array is read."""
    used: set[str] = set()
    waiting = list(expressions)
    while waiting:
        node = waiting.pop()
        if isinstance(node, AxisValue):
            used.add(node.name)
        elif not isinstance(node, Read):
            waiting += node.children
    return frozenset(used)
