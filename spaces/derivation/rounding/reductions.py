"""What right kernels may make of sums and products whose terms are known up to intervals.

The formulas stand here once, over any numbers (:mod:`spaces.numerics.numbers`); adding up the
terms is left to whoever has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from spaces.derivation.algebra import factors, product
from spaces.derivation.products.roles import dtype_beside, sides_of
from spaces.derivation.rounding.approximate import Approximate, Approximation
from spaces.dtypes import dtype
from spaces.language.program import Program, Stage
from spaces.language.tree import Expression, Read
from spaces.numerics.adding import error_of_sum
from spaces.numerics.interval import SLACK, Arithmetic, Interval


@dataclass(frozen=True)
class Terms:
    """The factors of a sum's terms: of their ``values``, of their ``sizes``, and of several parts
    of how far they may be ``off``. Of whole numbers there are values alone."""

    values: Sequence[Any]
    sizes: Sequence[Any] = ()
    off: Sequence[Any] = ()


def terms_of_sum(program: Program, stage: Stage, meaning: Approximation) -> Terms:
    """What is to be multiplied, and added up over all points that are reduced."""
    parts = [_rounded_to(program, stage, f, meaning) for f in _factors(program, stage)]
    values = [part.value for part in parts]
    if all(meaning.is_whole(part) for part in parts):
        return Terms(values)
    wide = [meaning.numbers.wide(value) for value in values]
    sizes = [meaning.numbers.call("abs", [value]) for value in wide]
    off = []
    for place, part in enumerate(parts):
        if not is_exact(part):
            before = [
                size if is_exact(other) else size + meaning.radius(other)
                for size, other in zip(sizes[:place], parts[:place], strict=True)
            ]
            off.append([*before, meaning.radius(part), *sizes[place + 1 :]])
    return Terms(wide, sizes, off)


def sum_of_terms(
    program: Program, stage: Stage, meaning: Approximation, sums: Terms
) -> Approximate:
    """A sum by what those of :class:`Terms` add up to, one number each: the error of adding up,
    and how far terms may be off."""
    numbers, kind = meaning.numbers, meaning.rules.kind
    (value,), (size,) = sums.values, sums.sizes
    terms = prod(program.shape(stage.over))
    relative, absolute = error_of_sum(terms, kind, _dtypes(program, stage), 1.0, 1.0)
    error = numbers.call("abs", [value]) * relative + size * absolute
    for part in sums.off:
        error = error + part
    return within(meaning, value, error + Arithmetic.of(kind).least)


def product_of_terms(meaning: Approximation, value: Any, most: Any, terms: int) -> Approximate:
    """A product of so many ``terms``, which is ``value``; ``most`` that of all their magnitudes,
    each with how far it may be off."""
    size = meaning.numbers.call("abs", [value])
    rounding = size * (terms * Arithmetic.of(meaning.rules.kind).unit)
    return within(meaning, value, (most - size + rounding) * SLACK)


def within(meaning: Approximation, value: Any, error: Any) -> Approximate:
    """So far from a value; anything where the error is not known, but the value is."""
    unknown = (error != error) & (value <= value)
    return Approximate(value, Interval(value - error, value + error, unknown))


def ends_of_best(reducer: str, body: Approximate) -> tuple[Any, Any, Any]:
    """The interval of what a place is of, so turned that ``reducer`` wants the greatest."""
    assert body.interval is not None
    b = body.interval
    return (b.low, b.high, b.free) if reducer == "argmax" else (-b.high, -b.low, b.free)


def place_of_best(meaning: Approximation, place: Any, contested: Any) -> Approximate:
    """A place; any, where it is ``contested``: where another element may be the best."""
    wide = meaning.numbers.wide(place)
    return Approximate(wide, Interval(wide, wide, contested))


def is_exact(part: Approximate) -> bool:
    """Whether all kernels have the same value, as they have of an operand."""
    return part.interval is None or part.interval.low is part.interval.high


def _factors(program: Program, stage: Stage) -> Sequence[Expression]:
    """The factors of a sum's terms; several that may be computed as one array of 16 bits are one
    (:mod:`spaces.derivation.cutting`)."""
    found = factors(stage.body)
    sides = sides_of([(factor.axes, factor) for factor in found])
    if isinstance(sides, str):
        return found
    for side, other in (sides, sides[::-1]):
        if len(side.factors) > 1 and dtype_beside(program, product(other.factors)):
            return product(side.factors), *other.factors
    return found


def _rounded_to(
    program: Program, stage: Stage, factor: Expression, meaning: Approximation
) -> Approximate:
    """A factor that is computed may be rounded to the dtype of the arrays that it is multiplied
    with, as tensor cores need it."""
    found = factor.fold(meaning)
    given = isinstance(factor, Read) and factor.name in program.operand
    epsilons = [dtype(name).epsilon for name in _dtypes(program, stage)]
    if given or found.interval is None or not epsilons or factor.axes.isdisjoint(stage.over):
        return found
    b = found.interval
    width = meaning.numbers.call("abs", [found.value]) * max(epsilons)
    return Approximate(found.value, Interval(b.low - width, b.high + width, b.free))


def _dtypes(program: Program, stage: Stage) -> list[str]:
    """The dtypes of the operands that a sum of products has as factors."""
    found = factors(stage.body)
    names = [f.name for f in found if isinstance(f, Read) and f.name in program.operand]
    return [program.operand[name].dtype for name in names] if len(found) > 1 else []
