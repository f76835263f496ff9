"""Axes as parts: an axis that an index reads through a quotient, or a sorted table, splits.

Where one array is read at ``h`` and another at ``h // 4``, neighbours along ``h`` share an entry of
the second: ``h`` is four times a part ``h//4`` that both arrays have, plus a part ``h%4`` of the
first one alone. So query heads of a group, output channels of a convolution's group, and, through
a sorted table, rows of an expert each find their place. Each index is then one
of parts (:mod:`spaces.algebra.index`): an ordered sum, in which a remainder ``e % d`` is
``e - e // d * d``, so that neighbours of one place are seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tilewright.spaces.algebra.atoms import Entry, Quotient
from tilewright.spaces.algebra.index import Index, total, variable
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import Affine, affine
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.reading.inference import entry_ranges
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Number, Read


@dataclass(frozen=True)
class Part:
    """A whole axis, or what remains of one that splits. Its values are in ``range(extent)``."""

    name: str
    axis: str
    extent: int

    @property
    def index(self) -> Index:
        """The part as an index."""
        return variable(self.name, self.extent)


@dataclass(frozen=True)
class Split:
    """One axis in parts, from the slowest to the fastest, and the axis as an index of them.

    ``table`` is the sorted operand it is read through, if there is one. An ``uneven`` axis does not
    fill the box of its parts: a last group is smaller, or groups are as large as a table says.
    """

    parts: tuple[Part, ...]
    index: Index
    table: str | None = None
    uneven: bool = False


@dataclass(frozen=True)
class Indexing:
    """The indices of a program in terms of parts of axes.

    ``splits`` has every axis. ``tables`` has the number that the entries of each integer operand
    are below.
    """

    splits: Mapping[str, Split]
    tables: Mapping[str, int]
    _known: dict[Expression, Index] = field(default_factory=dict, compare=False, repr=False)

    def index(self, expression: Expression) -> Index:
        """Return an expression of axes and entries of tables as an index of parts."""
        if isinstance(expression, AxisValue):
            return self.splits[expression.name].index
        if expression not in self._known:
            self._known[expression] = self.of(affine(expression))
        return self._known[expression]

    def of(self, normal: Affine) -> Index:
        """Return an index in its normal form as an index of parts."""
        return total(((self._atom(atom), c) for atom, c in normal.terms), normal.constant)

    def place(self, indices: Iterable[Expression], strides: Iterable[int]) -> Index:
        """Return the place of an element, in elements from the start of its array."""
        return total(zip(map(self.index, indices), strides, strict=True))

    def parts(self, axis: str) -> tuple[Part, ...]:
        """Return the parts of an axis."""
        return self.splits[axis].parts

    @property
    def counted_from_the_first(self) -> Indexing:
        """The same, with the points of each segment of a sorted table counted from the first point
        of all, not from the segment's own: the inner part of such an axis has the axis' values."""
        splits = {
            axis: replace(split, index=split.parts[-1].index) if split.table else split
            for axis, split in self.splits.items()
        }
        return Indexing(splits, self.tables)

    def reads(self, expression: Expression) -> frozenset[str]:
        """Return the parts that an expression's value may depend on."""
        if isinstance(expression, AxisValue):
            return self.splits[expression.name].index.names
        if isinstance(expression, Binary) and expression.operator in ("//", "%"):
            with suppress(InputError):  # a quotient that is no index depends on all it is made of
                return self.index(expression).names
        indices = expression.indices if isinstance(expression, Read) else ()
        if indices:
            return frozenset().union(*(self.index(index).names for index in indices))
        return frozenset().union(*map(self.reads, expression.children))

    def _atom(self, atom: Expression) -> Index:
        match atom:
            case AxisValue(name):
                return self.splits[name].index
            case Read(name, (AxisValue(axis),)) if self.splits[axis].table == name:
                return self.splits[axis].parts[0].index
            case Read(name, indices):
                entry = Entry(name, tuple(map(self.index, indices)), self.tables.get(name))
                return Index(((entry, 1),))
            case Binary("//", left, Number(divisor)):
                return self.index(left) // int(divisor)
            case Binary("%", left, Number(divisor)):
                dividend = self.index(left)
                return dividend - dividend // int(divisor) * int(divisor)
        raise TypeError(f"{atom} is no atom of an index")


def indexing(program: Program, *bodies: Expression) -> Indexing:
    """Return the parts that the axes of ``program`` split in where ``bodies`` are computed."""
    tables = {name: high + 1 for name, (_, high) in entry_ranges(program).items()}
    whole = whole_axes(program)
    plain, splits = Indexing(whole, tables), dict(whole)
    reads = dict.fromkeys(read for body in bodies for read in body.reads)
    indices = dict.fromkeys(plain.index(index) for read in reads for index in read.indices)
    entries = [atom for index in indices for atom, _ in index.terms if isinstance(atom, Entry)]
    dividing = [a for index in indices for a in index.atoms() if isinstance(a, Quotient)]
    for axis, extent in program.extents:
        at = variable(axis, extent)
        if found := _by_table(program, axis, extent, [e for e in entries if e.indices == (at,)]):
            splits[axis] = found
        elif divisors := _nested({q.divisor for q in dividing if q.dividend == at}):
            splits[axis] = _by_quotients(axis, extent, divisors)
    return plain if splits == whole else Indexing(splits, tables)


def whole_axes(program: Program) -> dict[str, Split]:
    """Return all axes of a program as one part each."""
    parts = [Part(axis, axis, extent) for axis, extent in program.extents]
    return {part.axis: Split((part,), part.index) for part in parts}


def number_of(parts: Sequence[Part]) -> Index:
    """Return the number of a point of some parts, the last part the fastest."""
    result = Index()
    for part in parts:
        result = result * part.extent + part.index
    return result.ordered


def _by_table(program: Program, axis: str, extent: int, entries: Iterable[Entry]) -> Split | None:
    """Rows of one entry of a sorted table are neighbours: they begin where its entry begins.
    ``entries`` are those at ``axis`` alone."""
    for entry in entries:
        table = program.operand.get(entry.table)
        drawn = table and table.drawn
        if drawn and drawn.sorted:
            outer = Part(entry.formula, axis, drawn.below)
            inner = Part(f"{axis} of {outer.name}", axis, extent)
            start = Index(((Entry(f"start.{entry.table}", (outer.index,)), 1),))
            index = total([(start, 1), (inner.index, 1)])
            return Split((outer, inner), index, table=entry.table, uneven=True)
    return None


def _nested(divisors: set[int]) -> list[int]:
    """Select divisors that each divide the next, from the smallest on."""
    chosen: list[int] = []
    for divisor in sorted(divisors):
        if not chosen or divisor % chosen[-1] == 0:
            chosen.append(divisor)
    return chosen


def _by_quotients(axis: str, extent: int, divisors: list[int]) -> Split:
    """``axis`` is the sum of ``d_i * part_i``, the fastest part with ``d = 1``."""
    steps = [1, *divisors]
    parts = [Part(f"{axis}//{steps[-1]}", axis, ceil_div(extent, steps[-1]))]
    for step, above in zip(reversed(steps[:-1]), reversed(steps[1:]), strict=True):
        name = f"{axis}//{step}%{above // step}" if step > 1 else f"{axis}%{above}"
        parts.append(Part(name, axis, above // step))
    index = total(zip((part.index for part in parts), reversed(steps), strict=True))
    return Split(tuple(parts), index, uneven=extent % steps[-1] != 0)
