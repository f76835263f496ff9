"""Division with rounding, on integers and, element by element, on NumPy arrays of them."""

from __future__ import annotations

from typing import Any


def ceil_div(a: Any, b: Any) -> Any:
    """Return the quotient, rounded up."""
    return -(-a // b)


def round_up(a: Any, unit: Any) -> Any:
    """Return the least multiple of ``unit`` not below ``a``."""
    return ceil_div(a, unit) * unit


def doubled(least: int, most: int) -> tuple[int, ...]:
    """Return ``least`` times 1, 2, 4 and so on, up to the first that is no less than ``most``."""
    values = [least]
    while values[-1] < most:
        values.append(2 * values[-1])
    return tuple(values)
