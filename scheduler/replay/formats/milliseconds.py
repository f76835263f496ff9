"""Times as other tuners write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LEAST, FAILED = 1e-9, 1e20
"""Between them lie times; the latter stands for a failure where a number must."""


def seconds(milliseconds: Any) -> float | None:
    """The seconds of a time in milliseconds; None for what is none, such as an error's name."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return milliseconds / 1e3 if LEAST < milliseconds < FAILED else None


def total_seconds(milliseconds: Iterable[Any]) -> float | None:
    """The sum of those that are known, in seconds; None if none is."""
    known = [time for time in map(seconds, milliseconds) if time is not None]
    return sum(known) if known else None
