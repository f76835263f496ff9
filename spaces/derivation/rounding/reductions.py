"""Bound the sums and products of terms that are known up to intervals.

The formulas stand here once, for any numbers (:mod:`spaces.numerics.numbers`); callers add up the
terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright.spaces.derivation.algebra import factors, product
from tilewright.spaces.derivation.products.roles import dtype_beside, sides_of
from tilewright.spaces.derivation.recurrent.view import carried
from tilewright.spaces.derivation.rounding.approximate import Approximate, Approximation
from tilewright.spaces.derivation.rounding.repeats import repeats
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.program import Operand, Program, Stage
from tilewright.spaces.language.tree import Binary, Expression, Read
from tilewright.spaces.numerics.adding import adds_float8, drift_of_sum, error_of_sum
from tilewright.spaces.numerics.interval import SLACK, Arithmetic, Interval, nowhere

ALIKE, APART = 1.0, 2.0
"""Says by how many units of a sum factors may be off that are rounded twice, and of the root of all
terms' squares."""

WALK = 1.5
"""Says by how many roots of all terms' squares sums of float8 products are taken to stray from none
on the way to their value: as :func:`spaces.numerics.allowance.error_of_sums` has it for
products."""
RAISED = 2.0**8
"""Kernels multiply a factor of at most one by this before they round it to float8, so that less of
it is below the least normal number, and sums by the inverse. float8_e4m3fn reaches 448."""
ALIKE_FLOAT8, APART_FLOAT8 = 0.5, 1.5
"""The same of factors that are rounded once, as they are to float8."""
SPACINGS = {"float8_e4m3fn": 2.0**-9, "float8_e5m2": 2.0**-16}
"""Spacings between the least numbers of dtypes whose unit is not all that rounding to them
costs."""
SUBNORMAL = 3 * 2.0**-25
"""Says how far a factor of at most one is off, thrice, that is rounded to less than float16's least
normal number."""
LARGEST = {"float16": 65504.0, "bfloat16": 2.0**128 - 2.0**120}
"""The greatest values of computed factors that kernels round to these dtypes: more is infinite."""
PARTS = 32
"""Parts of a sum at most that are merged where both what is added and what comes of it may be zero
below the least normal number, as atomic additions of a GPU have it."""
_NONE = (0.0, False)


@dataclass(frozen=True)
class Terms:
    """The quantities to add up for a sum: the factors of the terms' ``values``, of their ``sizes``,
    and of several parts of their errors, ``off``. Callers add up ``finite`` sizes alone as well.

    If some factors may be rounded to fewer bits, ``squares`` are the factors of squared terms. The
    sum is then off by the share ``alike`` of itself, and by the share ``apart`` of the root of all
    squares. Integers have values alone.
    """

    values: Sequence[Any]
    sizes: Sequence[Any] = ()
    off: Sequence[Any] = ()
    squares: Sequence[Any] = ()
    alike: float = 0.0
    apart: float = 0.0
    finite: Any = 0.0


def terms_of_sum(program: Program, stage: Stage, meaning: Approximation) -> Terms:
    """Make the factors that are multiplied, and summed over all points that are reduced."""
    found = _factors(program, stage)
    parts = [factor.fold(meaning) for factor in found]
    values = [part.value for part in parts]
    if all(meaning.is_integer(part) for part in parts):
        return Terms(values)
    wide = [meaning.numbers.wide(value) for value in values]
    sizes = [meaning.numbers.call("abs", [value]) for value in wide]
    kinds = [_rounded_to(program, stage, *each) for each in zip(found, parts, strict=True)]
    off = []
    for place, part in enumerate(parts):
        if not is_exact(part):
            radius = _radius(meaning, part, sizes[place], kinds[place])
            before = [
                size if is_exact(other) else size + meaning.radius(other)
                for size, other in zip(sizes[:place], parts[:place], strict=True)
            ]
            off.append([*before, radius, *sizes[place + 1 :]])
    for place, kind in enumerate(kinds):
        if spacing := max((SPACINGS.get(name, 0.0) for name in kind), default=0.0):
            lost = meaning.numbers.constant(spacing / 2 / RAISED)
            off.append([*sizes[:place], lost, *sizes[place + 1 :]])
    units = [
        max(((dtype(n).epsilon, n in SPACINGS) for n in kind), default=_NONE) for kind in kinds
    ]
    alike = sum(unit * (ALIKE_FLOAT8 if once else ALIKE) for unit, once in units)
    apart = sum(
        unit * (APART_FLOAT8 if once else APART) * repeats(program, stage, factor) ** 0.5
        for factor, (unit, once) in zip(found, units, strict=True)
        if unit
    )
    has_squares = alike or adds_float8(dtypes_of_factors(program, stage))
    squares = [
        size * size + (SUBNORMAL / apart) ** 2 if "float16" in kind else size * size
        for size, kind in zip(sizes, kinds, strict=True)
        if has_squares
    ]
    return Terms(wide, sizes, off, squares, alike, apart)


def _radius(meaning: Approximation, part: Approximate, size: Any, kinds: Sequence[str]) -> Any:
    """Return how far a factor of this ``size`` may be off before it is rounded to one of the
    ``kinds``; infinitely where that may make an infinity of a finite value."""
    numbers, radius = meaning.numbers, meaning.radius(part)
    largest = min((LARGEST[name] for name in kinds if name in LARGEST), default=None)
    if largest is None:
        return radius
    infinite = numbers.constant(float("inf"))
    return numbers.select((size < infinite) & (size + radius > largest), infinite, radius)


def sum_of_terms(
    program: Program, stage: Stage, meaning: Approximation, sums: Terms
) -> Approximate:
    """Bound a sum from the totals of :class:`Terms`, one number each: the error of adding up, the
    errors of the terms, and the error of rounding factors.

    Rounding to nearest is off by half a unit of a factor at most, and by .21 of one on average over
    all values, at random up or down. Terms t together are off by .21 sqrt(sum(t t)) units in
    standard deviation. The allowance of 1.5 times that root is seven standard deviations, and more
    than few terms can be off at all; 2 times the root is seven standard deviations of two
    roundings. Where all factors are rounded alike, they are off by half a unit of their sum each
    time. Values rounded to float8 are also off by half its least spacing: their terms there are in
    :class:`Terms`.
    """
    numbers, kind = meaning.numbers, meaning.rules.sums_in
    (value,), (size,) = sums.values, sums.sizes
    terms = prod(program.shape(stage.over))
    names, magnitude = dtypes_of_factors(program, stage), numbers.call("abs", [value])
    roots = [numbers.call("sqrt", [square]) for square in sums.squares]
    relative, absolute = error_of_sum(terms, kind, names, 1.0, 1.0)
    error = magnitude * (relative + drift_of_sum(terms, kind, names))
    if adds_float8(names):
        walk = roots[0] * WALK
        shares = (
            error_of_sum(terms, kind, names, 1.0, 0.0),
            error_of_sum(terms, kind, names, 0.0, 1.0),
        )
        for share, grown in zip(shares, (magnitude + walk, walk), strict=True):
            error = error + numbers.least(size, grown) * share[1]
    else:
        error = error + size * absolute
    off = numbers.constant(0.0)
    for part in sums.off:
        off = off + part
    for root in roots:
        error = error + magnitude * sums.alike + root * sums.apart
    lost = _lost(kind, terms)
    found = within(meaning, value, error + off + lost, kind)
    times = _taken_out(program, stage, meaning, sums)
    found = _with_overflow(meaning, found, size, sums.finite, times, off)
    if stage.name == carried(program):
        found = _unless_infinite(found, size, numbers)
    return _unless_taken_out(program, stage, meaning, found)


def _lost(kind: str, terms: int) -> float:
    """Say by how much a sum may be off because numbers near zero are far apart: they are replaced
    by zero, once in each of :data:`PARTS`, or rounded, with four terms at a time or more."""
    least = Arithmetic.of(kind).least
    return least * (1 + terms / 8 if kind == "float16" else 1 + 2 * min(terms, PARTS))


def _taken_out(program: Program, stage: Stage, meaning: Approximation, sums: Terms) -> Any:
    """Say how many times larger the sum may be that a kernel forms, if it divides or multiplies it
    by what all terms have in common once they are added: as where softmax's total is known last.
    Weights that are rounded to fewer bits may be :data:`RAISED` as long."""
    numbers = meaning.numbers
    one = numbers.constant(1.0)
    times = numbers.constant(RAISED if sums.alike else 1.0)
    for factor in factors(stage.body):
        above, below = factor, None
        match factor:
            case Binary("/", over, under):
                above, below = over, under
        for node, inverse in ((above, True), (below, False)):
            if node is not None and not node.axes & {*stage.over}:
                size = numbers.call("abs", [numbers.wide(node.fold(meaning).value)])
                times = times * numbers.greatest(one / size if inverse else size, one)
    return times


def _with_overflow(
    meaning: Approximation, found: Approximate, size: Any, rest: Any, times: Any, off: Any
) -> Approximate:
    """Return a sum, whose positive terms alone may be too large for the type, or its negative ones:
    the sum of some terms is infinite then, and NaN may come of both. ``size`` is the sum of
    magnitudes; a kernel forms one that is so many ``times`` as large. Where terms are infinite, so
    may the sum of the ``rest`` be, and of the other sign. Anything may come, too, where the sum is
    infinite by a factor that stands beside one which may be zero, for its error is not known: that
    makes ``off`` infinite."""
    assert found.interval is not None
    numbers, b = meaning.numbers, found.interval
    infinite = numbers.constant(float("inf"))
    largest = Arithmetic.of(meaning.rules.sums_in).largest
    finite = size < infinite
    up = finite & ((size + found.value) / 2 * times > largest)
    down = finite & ((size - found.value) / 2 * times > largest)
    beside = ~(off < infinite) | (rest * times > largest)
    doubtful = (numbers.call("abs", [found.value]) >= infinite) & beside
    low = numbers.select(down, -infinite, b.low)
    high = numbers.select(up, infinite, b.high)
    return Approximate(found.value, Interval(low, high, b.free | (up & down) | doubtful))


def _unless_infinite(found: Approximate, size: Any, numbers: Any) -> Approximate:
    """Return a sum that may be anything where a term is infinite: what terms have in common is
    multiplied last, and sums within terms are taken after the sum over these
    (:mod:`spaces.derivation.recurrent`)."""
    assert found.interval is not None
    b = found.interval
    return Approximate(
        found.value, Interval(b.low, b.high, b.free | ~(size < numbers.constant(float("inf"))))
    )


def _unless_taken_out(
    program: Program, stage: Stage, meaning: Approximation, found: Approximate
) -> Approximate:
    """Return a sum that other sums read may be anything where it may or may not be too large for
    the type: kernels that take what comes of it out of these come to NaN by infinities."""
    later = (other for other in program.stages if other.reducer == "sum")
    if stage.name not in {read.name for other in later for read in other.body.value_reads}:
        return found
    assert found.interval is not None
    b, infinite = found.interval, meaning.numbers.constant(float("inf"))
    doubtful = ((b.low <= -infinite) | (b.high >= infinite)) & (b.low < b.high)
    return Approximate(found.value, Interval(b.low, b.high, b.free | doubtful))


def product_of_terms(meaning: Approximation, value: Any, most: Any, terms: int) -> Approximate:
    """Return a product of so many ``terms``, which is ``value``; ``most`` that of all their
    magnitudes, each with how far it may be off."""
    size = meaning.numbers.call("abs", [value])
    rounding = size * (terms * Arithmetic.of(meaning.rules.kind).unit)
    return within(meaning, value, (most - size + rounding) * SLACK, meaning.rules.kind)


def within(meaning: Approximation, value: Any, error: Any, kind: str) -> Approximate:
    """Make the interval of values within ``error`` of a value. Bounds too large for the type
    ``kind`` become infinite; an infinite value stays itself; an unknown error of a finite value
    allows anything.
    """
    numbers, largest = meaning.numbers, Arithmetic.of(kind).largest
    size, most = numbers.call("abs", [value]), numbers.constant(float("inf"))
    infinite = numbers.operation("==", size, most)
    low, high = value - error, value + error
    low = numbers.select(low < -largest, -most, low)
    high = numbers.select(high > largest, most, high)
    low, high = (numbers.select(infinite, value, end) for end in (low, high))
    unknown = ~(error < most) & (value <= value) & ~infinite
    return Approximate(value, Interval(low, high, unknown))


def ends_of_best(reducer: str, body: Approximate) -> tuple[Any, Any, Any]:
    """Return the interval of what a place is of, so turned that ``reducer`` wants the greatest."""
    assert body.interval is not None
    b = body.interval
    return (b.low, b.high, b.free) if reducer == "argmax" else (-b.high, -b.low, b.free)


def place_of_best(
    meaning: Approximation, place: Any, contested: Any, first: Any, last: Any
) -> Approximate:
    """Return a place; where it is ``contested``, for another element may be the best, any from the
    ``first`` to the ``last`` that may be."""
    numbers, exact = meaning.numbers, meaning.numbers.wide(place)
    low, high = (numbers.select(contested, numbers.wide(end), exact) for end in (first, last))
    return Approximate(exact, Interval(low, high, nowhere(numbers)))


def is_exact(part: Approximate) -> bool:
    """Tell whether all kernels have the same value, as they have of an operand."""
    return part.interval is None or part.interval.low is part.interval.high


def _factors(program: Program, stage: Stage) -> Sequence[Expression]:
    """Return the factors of a sum's terms; several that may be computed as one array of 16 bits are
    one (:mod:`spaces.derivation.cutting`)."""
    found = factors(stage.body)
    sides = sides_of([(factor.axes, factor) for factor in found])
    if isinstance(sides, str):
        return found
    for side, other in (sides, sides[::-1]):
        if len(side.factors) > 1 and dtype_beside(program, product(other.factors)):
            return product(side.factors), *other.factors
    return found


def _rounded_to(
    program: Program, stage: Stage, factor: Expression, found: Approximate
) -> Sequence[str]:
    """Return the dtypes of the arrays that a factor is multiplied with, to which it may be rounded
    if it is computed, as tensor cores need it; none if it is not, and never that of codes."""
    given = isinstance(factor, Read) and factor.name in program.operand
    if given or found.interval is None or factor.axes.isdisjoint(stage.over):
        return ()
    return [each.dtype for each in _operands_of_factors(program, stage) if not each.coded]


def dtypes_of_factors(program: Program, stage: Stage) -> list[str]:
    """Return the dtypes of the operands that a sum of products has as factors."""
    return [each.dtype for each in _operands_of_factors(program, stage)]


def _operands_of_factors(program: Program, stage: Stage) -> list[Operand]:
    found = factors(stage.body)
    names = [f.name for f in found if isinstance(f, Read) and f.name in program.operand]
    return [program.operand[name] for name in names] if len(found) > 1 else []
