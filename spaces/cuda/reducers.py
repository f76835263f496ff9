"""What two values of a reducer become, as CUDA C++ on one number at a time."""

from __future__ import annotations

_JOINED = {
    "sum": "{} + {}",
    "prod": "{} * {}",
    "max": "tw::max_nan({}, {})",
    "min": "tw::min_nan({}, {})",
}


def joined(reducer: str, a: str, b: str) -> str:
    """C text of ``a`` and ``b`` as one value, NaN if one is."""
    return _JOINED[reducer].format(a, b)
