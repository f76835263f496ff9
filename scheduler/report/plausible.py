"""Tell numbers that may be times or weights from those that a stranger's database may hold too."""

from __future__ import annotations

LEAST, MOST = 1e-18, 1e18
"""Numbers between these have products, quotients and sums that floats can hold."""


def plausible(told: object) -> float | None:
    """Return a number that may be a time in seconds or a weight; None for all else."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    return float(told) if LEAST <= told <= MOST else None
