"""Compute how fast the best of some random draws is expected to be."""

from __future__ import annotations

import numpy as np


def exact_baseline(seconds: np.ndarray, draws: int) -> np.ndarray:
    """Expected seconds of the best of 1 .. ``draws`` schedules drawn without replacement.

    The mean of the first order statistic: all ``t`` draws are slower than the ``i`` fastest of
    ``N`` with probability ``C(N - i, t) / C(N, t)``. A failure, an infinite entry, counts as the
    slowest that ran.
    """
    ordered = np.sort(as_slowest(seconds, seconds))
    count = len(ordered)
    slower = count - np.arange(1, count)
    none_faster = np.ones(count - 1)
    expected = np.empty(draws)
    for drawn in range(draws):
        none_faster *= np.maximum(slower - drawn, 0) / max(count - drawn, 1)
        expected[drawn] = ordered[0] + np.diff(ordered) @ none_faster
    return expected


def calculated_baseline(seconds: np.ndarray, draws: int) -> np.ndarray:
    """Return the random-search baseline of ``autotuning_methodology`` (Willemsen et al., FGCS 159,
    2024).

    It is the time at the mean rank of the best, ``t (N + 1) / (t + 1)`` of the ``N`` schedules that
    ran, counted from the slowest. It is one rank better, because ranks begin at 1 and indices at 0.
    The time at the mean rank is not the mean time, so a true random search does not score 0 here.
    """
    slowest_first = np.sort(seconds[np.isfinite(seconds)])[::-1]
    count = len(slowest_first)
    drawn = np.arange(1, draws + 1)
    places = np.rint(drawn * (count + 1) / (drawn + 1)).astype(int)
    return slowest_first[np.minimum(places, count - 1)]


def as_slowest(seconds: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return ``seconds`` with the slowest of ``known`` in the place of infinite ones."""
    return np.where(np.isinf(seconds), known[np.isfinite(known)].max(), seconds)
