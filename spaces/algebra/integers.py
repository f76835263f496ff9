"""Division with rounding, on integers and, element by element, on NumPy arrays of them."""

from __future__ import annotations

from typing import Any


def ceil_div(a: Any, b: Any) -> Any:
    """The quotient, rounded up."""
    return -(-a // b)


def round_up(a: Any, unit: Any) -> Any:
    """The least multiple of ``unit`` not below ``a``."""
    return ceil_div(a, unit) * unit
