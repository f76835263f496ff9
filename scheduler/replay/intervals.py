"""Estimates over repeats with 95 % confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2


@dataclass(frozen=True)
class Estimate:
    """A value and the interval around it; None for bounds that so few repeats do not give."""

    value: float
    low: float | None = None
    high: float | None = None


def mean(values: np.ndarray) -> Estimate:
    """Return the mean, with Student's interval."""
    from scipy.special import stdtrit

    count, middle = len(values), float(np.mean(values))
    if count < 2:
        return Estimate(middle)
    half = float(stdtrit(count - 1, 1 - TAIL) * np.std(values, ddof=1) / count**0.5)
    return Estimate(middle, middle - half, middle + half)


def share(values: np.ndarray) -> Estimate:
    """Return the share of true ones, with Wilson's interval (JASA 22, 1927)."""
    from scipy.special import ndtri

    count, middle, z = len(values), float(np.mean(values)), float(ndtri(1 - TAIL))
    centre = (middle + z**2 / (2 * count)) / (1 + z**2 / count)
    spread = (middle * (1 - middle) / count + z**2 / (4 * count**2)) ** 0.5
    half = z * spread / (1 + z**2 / count)
    return Estimate(middle, max(0.0, centre - half), min(1.0, centre + half))


def median(values: np.ndarray) -> Estimate:
    """Return the median, between those order statistics that hold it with the confidence; values
    may be infinite."""
    from scipy.special import bdtr

    ordered = np.sort(values)
    count = len(ordered)
    middle = float((ordered[(count - 1) // 2] + ordered[count // 2]) / 2)
    left_out = int(np.sum(bdtr(np.arange(count // 2), count, 0.5) <= TAIL))
    if not left_out:
        return Estimate(middle)
    return Estimate(middle, float(ordered[left_out - 1]), float(ordered[-left_out]))
