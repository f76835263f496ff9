"""Checks of single values that users give, with one sentence for what is wrong."""

from __future__ import annotations

import math
import operator
from typing import Any

from tilewright.spaces.errors import InputError, shown


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return ``value`` as an int; :class:`InputError` unless it is a whole number in the range."""
    allowed = f"whole numbers from {least}" + ("" if most is None else f" to {most}")
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name}={shown(value)} is no whole number; allowed: {allowed}") from None
    if number < least or (most is not None and number > most):
        raise InputError(f"{name}={shown(number)} is out of range; allowed: {allowed}")
    return number


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a float; :class:`InputError` unless it is a finite number above zero."""
    allowed = "finite numbers above 0"
    if isinstance(value, bool | str | bytes):
        raise InputError(f"{name}={shown(value)} is no number; allowed: {allowed}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={shown(value)} is no number; allowed: {allowed}") from None
    except OverflowError:
        number = math.inf
    if not 0 < number < math.inf:
        raise InputError(f"{name}={shown(value)} is out of range; allowed: {allowed}")
    return number
