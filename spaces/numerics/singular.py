"""Find where functions of two intervals are not bounded by their corners and by zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilewright.spaces.numerics.numbers import Numbers

if TYPE_CHECKING:
    from tilewright.spaces.numerics.interval import Interval


def _power(numbers: Numbers, a: Interval, b: Interval) -> Any:
    """Tell where a power may be of zero by a negative exponent, of a negative number or NaN by an
    exponent that is not known exactly, or of negative numbers behind minus infinity by a fraction.
    """
    across = (a.low <= 0.0) & (a.high >= 0.0)
    endless = (a.low <= -numbers.constant(float("inf"))) & (a.low < a.high)
    roots = endless & (numbers.call("floor", [b.low]) < b.low)
    vague = ((a.low < 0.0) | (a.low != a.low)) & (b.low < b.high)
    return (across & (b.low < 0.0)) | vague | roots


def _angle(numbers: Numbers, a: Interval, b: Interval) -> Any:
    """Tell where an angle may be that of the origin, or on either side of the half turn."""
    return (a.low <= 0.0) & (a.high >= 0.0) & (b.low <= 0.0)


def _remainder(numbers: Numbers, a: Interval, b: Interval) -> Any:
    """Tell where the whole part of a quotient is not known."""
    points = (a.low, a.high, nearest_zero(numbers, a))
    quotients = [numbers.call("abs", [x / y]) for x in points for y in (b.low, b.high)]
    rounded = [quotient * (1.0 + off) for quotient in quotients for off in (-1e-15, 1e-15)]
    first, *others = (numbers.call("floor", [quotient]) for quotient in rounded)
    differ = (b.low <= 0.0) & (b.high >= 0.0)
    for other in others:
        differ = differ | (first < other) | (first > other)
    vague = (a.low < a.high) | (b.low < b.high)
    return vague & differ


def nearest_zero(numbers: Numbers, a: Interval) -> Any:
    """Return the point of an interval that is nearest to zero."""
    return numbers.least(numbers.greatest(a.low, numbers.constant(0.0)), a.high)


WHERE: Mapping[str, Callable[[Numbers, Interval, Interval], Any]] = {
    "pow": _power,
    "atan2": _angle,
    "fmod": _remainder,
}
"""Functions of two that tell where the corners of their arguments do not bound them."""
