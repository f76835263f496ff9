"""Objectives of tuning several workloads together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from tilewright.spaces.errors import InputError, shown


class Objective(StrEnum):
    """The objective of a suite.

    ``latency`` is the sum of latencies, each times its weight; less is better. ``speedup`` is the
    weighted geometric mean of the speed-ups over the library; more is better.
    """

    LATENCY = "latency"
    SPEEDUP = "speedup"

    def evaluate(
        self,
        weights: Sequence[float],
        latencies: Sequence[float | None],
        library: Sequence[float | None],
    ) -> float | None:
        """Return the value: seconds, or how many times as fast.

        None while a latency is missing, of ours or of the library if that counts.
        """
        ours = [latency for latency in latencies if latency is not None]
        theirs = [latency for latency in library if latency is not None]
        if len(ours) < len(weights):
            return None
        if self is Objective.LATENCY:
            return math.fsum(w * g for w, g in zip(weights, ours, strict=True))
        if len(theirs) < len(weights):
            return None
        logarithms = (w * math.log(b / g) for w, g, b in zip(weights, ours, theirs, strict=True))
        return math.exp(math.fsum(logarithms) / math.fsum(weights))

    def slope(self, weight: float, latency: float) -> float:
        """Return the derivative by one latency: of the sum, or of the logarithm of the mean,
        negated and but for a factor that all share."""
        return weight if self is Objective.LATENCY else weight / latency

    def better(self, value: float, other: float) -> bool:
        """Return True if ``value`` is better than ``other``."""
        return value < other if self is Objective.LATENCY else value > other


def as_objective(given: Objective | str) -> Objective:
    """Return ``given`` itself, or the objective of that name; :class:`InputError` if there is
    none."""
    try:
        return Objective(given)
    except ValueError:
        raise InputError(
            f"objective={shown(given)} is unknown; allowed: {', '.join(Objective)}"
        ) from None
