"""Axes as parts: an axis that an index reads through a quotient, or a sorted table, splits.

Where one array is read at ``h`` and another at ``h // 4``, neighbours along ``h`` share an entry of
the second: ``h`` is four times a part ``h//4`` that both arrays have, plus a part ``h%4`` of the
first one alone. So query heads of a group, output channels of a convolution's group, and, through
a sorted table, rows of an expert each find their place. Each index is then a form
(:mod:`spaces.derivation.products.forms`) of parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.products.forms import (
    Entry,
    Form,
    divided,
    quotients,
    remainder,
    variable,
)
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


@dataclass(frozen=True)
class Split:
    """One axis in parts, from the slowest to the fastest, and the axis as a form of them.

    ``table`` is the sorted operand it is read through, if there is one. An ``uneven`` axis does not
    fill the box of its parts: a last group is smaller, or groups are as large as a table says.
    """

    parts: tuple[Part, ...]
    form: Form
    table: str | None = None
    uneven: bool = False


@dataclass(frozen=True)
class Indexing:
    """The indices of a program in terms of parts of axes.

    ``splits`` has every axis. ``limits`` has the extent of every part, and for integer operands the
    number that their entries are below.
    """

    splits: Mapping[str, Split]
    limits: Mapping[str, int]
    _known: dict[Expression, Form] = field(default_factory=dict, compare=False, repr=False)

    def form(self, index: Expression) -> Form:
        """Return an index as a form of parts."""
        if isinstance(index, AxisValue):
            return self.splits[index.name].form
        if index not in self._known:
            self._known[index] = self.of(affine(index))
        return self._known[index]

    def of(self, normal: Affine) -> Form:
        """Return an index in its normal form as a form of parts."""
        result = Form((), normal.constant)
        for atom, coefficient in normal.terms:
            result = result + self._atom(atom) * coefficient
        return result

    def parts(self, axis: str) -> tuple[Part, ...]:
        """Return the parts of an axis."""
        return self.splits[axis].parts

    @property
    def counted_from_the_first(self) -> Indexing:
        """The same, with the points of each segment of a sorted table counted from the first point
        of all, not from the segment's own: the inner part of such an axis has the axis' values."""
        splits = {
            axis: replace(split, form=variable(split.parts[-1].name)) if split.table else split
            for axis, split in self.splits.items()
        }
        return Indexing(splits, self.limits)

    def reads(self, expression: Expression) -> frozenset[str]:
        """Return the parts that an expression's value may depend on."""
        if isinstance(expression, AxisValue):
            return self.splits[expression.name].form.axes
        if isinstance(expression, Binary) and expression.operator in ("//", "%"):
            with suppress(InputError):  # a quotient that is no index depends on all it is made of
                return self.form(expression).axes
        indices = expression.indices if isinstance(expression, Read) else ()
        if indices:
            return frozenset().union(*(self.form(index).axes for index in indices))
        return frozenset().union(*map(self.reads, expression.children))

    def _atom(self, atom: Expression) -> Form:
        match atom:
            case AxisValue(name):
                return self.splits[name].form
            case Read(name, (AxisValue(axis),)) if self.splits[axis].table == name:
                return variable(self.splits[axis].parts[0].name)
            case Read(name, indices):
                return variable(Entry(name, tuple(map(self.form, indices))))
            case Binary("//", left, Number(divisor)):
                return divided(self.form(left), int(divisor), self.limits)
            case Binary("%", left, Number(divisor)):
                return remainder(self.form(left), int(divisor), self.limits)
        raise TypeError(f"{atom} is no atom of an index")


def indexing(program: Program, body: Expression) -> Indexing:
    """Return the parts that the axes of ``program`` split in where ``body`` is computed."""
    tables = {name: high + 1 for name, (_, high) in entry_ranges(program).items()}
    whole = {a: Split((Part(a, a, n),), variable(a)) for a, n in program.extents}
    plain = Indexing(whole, {**program.extent, **tables})
    splits, limits = dict(whole), dict(tables)
    forms = dict.fromkeys(plain.form(index) for read in body.reads for index in read.indices)
    entries = [atom for form in forms for atom, _ in form.terms if isinstance(atom, Entry)]
    dividing = [quotient for form in forms for quotient in quotients(form)]
    for axis, extent in program.extents:
        at = variable(axis)
        if found := _by_table(program, axis, extent, [e for e in entries if e.indices == (at,)]):
            splits[axis] = found
        elif divisors := _nested({q.divisor for q in dividing if q.dividend == at}):
            splits[axis] = _by_quotients(axis, extent, divisors)
    if splits == whole:
        return plain
    limits |= {part.name: part.extent for split in splits.values() for part in split.parts}
    return Indexing(splits, limits)


def _by_table(program: Program, axis: str, extent: int, entries: Iterable[Entry]) -> Split | None:
    """Rows of one entry of a sorted table are neighbours: they begin where its entry begins.
    ``entries`` are those at ``axis`` alone."""
    for entry in entries:
        table = program.operand.get(entry.table)
        drawn = table and table.drawn
        if drawn and drawn.sorted:
            outer = Part(str(entry), axis, drawn.below)
            inner = Part(f"{axis} of {outer.name}", axis, extent)
            start = Entry(f"start.{entry.table}", (variable(outer.name),))
            form = variable(start) + variable(inner.name)
            return Split((outer, inner), form, table=entry.table, uneven=True)
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
    form = Form()
    for part, step in zip(parts, reversed(steps), strict=True):
        form = form + variable(part.name) * step
    return Split(tuple(parts), form, uneven=extent % steps[-1] != 0)
