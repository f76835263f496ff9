"""Complex numbers as pairs: a program of them becomes one of real numbers.

A complex array has a last axis of two elements more, the real and the imaginary part, side by side
in memory as torch's ``view_as_real`` has them. A complex value is a pair of real expressions, and a
complex stage chooses one of both by its place along that axis. A sum of products of two complex
factors stays a sum of products of two: one factor, mostly that of columns, is written out as
matrices of 2 x 2, so that all arrays of the product lie in rows.

    t[i, part2, o, part] = select(part == 0, select(part2 == 0, w[i, o, 0], -w[i, o, 1]), ...)
    y[b, o, part] = sum[i, part2](x[b, i, part2] * t[i, part2, o, part])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import NoReturn

from tilewright.spaces.derivation.algebra import ZERO, minus, negated, over, plus, times
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.cycles import reads_ahead
from tilewright.spaces.language.domains import Bounded
from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.reading.declarations import Declaration
from tilewright.spaces.language.reading.expressions import OF_COMPLEX
from tilewright.spaces.language.reading.spelling import CASTS
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
    Select,
)

PART = "part"
"""The name of the axis of both parts, unless it is taken."""

Pair = tuple[Expression, Expression]


def in_parts(
    given: Bounded, declared: Mapping[str, Declaration], taken: Iterable[str]
) -> tuple[Bounded, dict[str, Declaration]]:
    """Return stages and declarations of real numbers that compute the same; :class:`InputError` for
    a complex value where only real ones are known."""
    kinds = {name for name, known in declared.items() if known.is_complex}
    bodies = (*given.conditions, *(stage.body for stage in given.stages))
    calls = (n.function for body in bodies for n in body.walk() if isinstance(n, Call))
    if not kinds and not any(function in OF_COMPLEX for function in calls):
        return given, dict(declared)
    if ahead := reads_ahead(given.stages):
        problem = f"stage {ahead!r} reads itself in a program of complex numbers"
        raise InputError(f"{problem}; allowed: their parts, written out")
    names = {*taken, *given.extents}
    part, inner = _free(PART, names), _free(PART, {*names, _free(PART, names)})
    parts = _Parts({*kinds}, part, inner, {*names, part, inner})
    for condition in given.conditions:
        parts.real(condition, f"'where {condition}'")
    stages = tuple(s for stage in given.stages for s in parts.stages(stage, stage.name in kinds))
    for stage in given.stages:
        if stage.name in declared and stage.name in parts.arrays - kinds:
            known = declared[stage.name]
            known.statement.fail(f"{stage.name!r} is complex; allowed: complex64, or a real part")
    used = {axis for stage in stages for axis in (*stage.axes, *stage.over)}
    extents = {**given.extents, **{axis: 2 for axis in (part, inner) if axis in used}}
    found = {name: _declared(known) for name, known in declared.items()}
    return replace(given, extents=extents, stages=stages), found


def _free(stem: str, taken: Collection[str]) -> str:
    """Return a name that begins with a stem and is not taken."""
    return next(n for n in chain([stem], (f"{stem}{i}" for i in count(2))) if n not in taken)


def _declared(known: Declaration) -> Declaration:
    """Return what is declared of a complex array as that of an array of pairs."""
    if not known.is_complex:
        return known
    shape = None if known.shape is None else (*known.shape, 2)
    order = None if known.order is None else (*known.order, len(known.order))
    return replace(known, shape=shape, order=order)


@dataclass(frozen=True)
class _Parts:
    """The real and imaginary parts of expressions; ``arrays`` are those of complex numbers. Stages
    have an axis ``part`` of both, and sums of products one ``inner`` more."""

    arrays: set[str]
    part: str
    inner: str
    taken: set[str]

    def stages(self, stage: Stage, declared: bool) -> Iterator[Stage]:
        """Yield a stage with an axis of both parts, if it is complex, and before it what it
        needs."""
        place = f"stage {stage.name!r}"
        real, imaginary = self.of(stage.body, place)
        if imaginary == ZERO and not declared:
            yield replace(stage, body=real)
            return
        if stage.reducer not in (None, "sum"):
            raise InputError(f"{place} is a {stage.reducer} of complex values; allowed: sum")
        self.arrays.add(stage.name)
        axes = (*stage.axes, self.part)
        product = self._product(stage) if stage.reducer else None
        if product is None:
            yield replace(stage, axes=axes, body=self._chosen(self.part, real, imaginary))
            return
        matrices, factor = product
        yield matrices
        own = Read(matrices.name, tuple(map(AxisValue, matrices.axes)))
        over = (*stage.over, self.inner)
        yield replace(stage, axes=axes, over=over, body=Binary("*", factor, own))

    def _product(self, stage: Stage) -> tuple[Stage, Expression] | None:
        """Return one factor of a product of two complex ones as a stage of matrices, and the other
        one; None if it is no such product."""
        match stage.body:
            case Binary("*", left, right):
                pairs = [self.of(side, f"stage {stage.name!r}") for side in (left, right)]
            case _:
                return None
        if any(imaginary == ZERO for _, imaginary in pairs) or self._are_beside(left, right):
            return None
        side = self._written_out(stage, left, right)
        (real, imaginary), other = pairs[side], pairs[1 - side]
        factor, beside = ((left, right), (right, left))[side]
        body = self._chosen(
            self.part,
            self._chosen(self.inner, real, negated(imaginary)),
            self._chosen(self.inner, imaginary, real),
        )
        batch = (a for a in stage.axes if a in factor.axes & beside.axes)
        own = (*(a for a in stage.axes if a in factor.axes - beside.axes), self.part)
        depth = (*(axis for axis in stage.over if axis in factor.axes), self.inner)
        name = _free(f"{stage.name}_parts", self.taken)
        self.taken.add(name)
        axes = (*batch, *depth, *own) if stage.axes[-1:] == own[-2:-1] else (*batch, *own, *depth)
        return Stage(name, axes, None, (), body), self._at(beside, other)

    def _written_out(self, stage: Stage, left: Expression, right: Expression) -> int:
        """Return the number of the factor that is written out: one whose innermost axis both have,
        so that it has to be turned, or else that of columns."""
        both = left.axes & right.axes & {*stage.axes}
        for number, factor in enumerate((left, right)):
            if isinstance(factor, Read) and factor.indices and factor.indices[-1].axes & both:
                return number
        return 0 if {*stage.axes[-1:]} <= left.axes - right.axes else 1

    def _are_beside(self, left: Expression, right: Expression) -> bool:
        """Tell whether both factors have the same axis innermost, along which there is no sum of
        products: they are multiplied element by element."""
        ends = [f.indices[-1] for f in (left, right) if isinstance(f, Read) and f.indices]
        return len(ends) == 2 and ends[0] == ends[1]

    def _at(self, factor: Expression, pair: Pair) -> Expression:
        """Return a factor at its place along the inner axis."""
        if isinstance(factor, Read) and factor.outside is None:
            return Read(factor.name, (*factor.indices, AxisValue(self.inner)))
        return self._chosen(self.inner, *pair)

    def _chosen(self, axis: str, first: Expression, second: Expression) -> Expression:
        return Select(Comparison("==", AxisValue(axis), ZERO), first, second)

    def real(self, node: Expression, place: str) -> Expression:
        """Return an expression that has no imaginary part."""
        real, imaginary = self.of(node, place)
        if imaginary != ZERO:
            raise InputError(
                f"{node} in {place} is complex; allowed: real(...), imag(...), abs(...)"
            )
        return real

    def of(self, node: Expression, place: str) -> Pair:
        """Return the parts of an expression in some place; the imaginary one of a real one is 0."""
        match node:
            case Read(name, indices, outside) if name in self.arrays:
                border = None if outside is None else 0.0
                return (
                    Read(name, (*indices, Number(0.0)), outside),
                    Read(name, (*indices, Number(1.0)), border),
                )
            case Number() | AxisValue() | Read():
                return node, ZERO
            case Negation(inner):
                real, imaginary = self.of(inner, place)
                return (Negation(real), negated(imaginary))
            case Binary(operator, left, right):
                return self._binary(
                    node, operator, self.of(left, place), self.of(right, place), place
                )
            case Select(condition, then, otherwise):
                chosen = self.real(condition, place)
                yes, no = self.of(then, place), self.of(otherwise, place)
                real = Select(chosen, yes[0], no[0])
                return real, ZERO if yes[1] == no[1] == ZERO else Select(chosen, yes[1], no[1])
            case Comparison(operator, left, right):
                return Comparison(operator, self.real(left, place), self.real(right, place)), ZERO
            case Call(function, arguments):
                return self._call(node, function, [self.of(a, place) for a in arguments], place)
        raise InputError(f"{node} in {place} has no parts")

    def _binary(self, node: Expression, operator: str, a: Pair, b: Pair, place: str) -> Pair:
        if a[1] == b[1] == ZERO:
            return Binary(operator, a[0], b[0]), ZERO
        match operator:
            case "+":
                return plus(a[0], b[0]), plus(a[1], b[1])
            case "-":
                return minus(a[0], b[0]), minus(a[1], b[1])
            case "*":
                return _multiplied(a, b)
            case "/" if b[1] == ZERO:
                return over(a[0], b[0]), over(a[1], b[0])
            case "/":
                above = _multiplied(a, (b[0], negated(b[1])))
                below = _square(b)
                return over(above[0], below), over(above[1], below)
        self._refuse(node, place)

    def _call(self, node: Expression, function: str, arguments: Sequence[Pair], place: str) -> Pair:
        first = arguments[0]
        match function:
            case "real":
                return first[0], ZERO
            case "imag":
                return first[1], ZERO
            case "conj":
                return first[0], negated(first[1])
        if all(imaginary == ZERO for _, imaginary in arguments):
            return Call(function, tuple(real for real, _ in arguments)), ZERO
        if function == "abs":
            return Call("sqrt", (_square(first),)), ZERO
        if function in CASTS:
            return Call(function, (first[0],)), Call(function, (first[1],))
        self._refuse(node, place)

    def _refuse(self, node: Expression, place: str) -> NoReturn:
        known = "+ - * /, abs, real, imag, conj and casts"
        raise InputError(f"{node} in {place} is of complex values; allowed: {known}")


def _multiplied(a: Pair, b: Pair) -> Pair:
    real = minus(times(a[0], b[0]), times(a[1], b[1]))
    return real, plus(times(a[0], b[1]), times(a[1], b[0]))


def _square(a: Pair) -> Expression:
    """Return the square of the absolute value."""
    return plus(times(a[0], a[0]), times(a[1], a[1]))
