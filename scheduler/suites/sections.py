"""The objective of a suite of sections, such as the phases of serving a model.

Each section has an objective of its own. The suite's is their geometric mean, so that a percent of
a short section counts as much as a percent of a long one. A plain suite is one section without a
name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.suite import Member

Latencies = Sequence[float | None]


def value_of(
    objective: Objective, members: Sequence[Member], latencies: Latencies, library: Latencies
) -> float | None:
    """Return the geometric mean of the sections' values; None while one of them is not known."""
    found = values_of(objective, members, latencies, library).values()
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None
    return known[0] if len(known) == 1 else math.exp(math.fsum(map(math.log, known)) / len(known))


def values_of(
    objective: Objective, members: Sequence[Member], latencies: Latencies, library: Latencies
) -> dict[str, float | None]:
    """Return the value of each section (:meth:`scheduler.suites.objective.Objective.evaluate`)."""
    return {
        name: objective.evaluate(
            list(weights.values()),
            [latencies[place] for place in weights],
            [library[place] for place in weights],
        )
        for name, weights in _weights(members).items()
    }


def slopes_of(objective: Objective, members: Sequence[Member], latencies: Latencies) -> list[float]:
    """Return the derivative of the value's logarithm by each latency, negated and but for a factor
    that all share; 0 while a latency is not known."""
    slopes = [0.0] * len(members)
    for weights in _weights(members).values():
        known = {
            place: (weight, latency)
            for place, weight in weights.items()
            if (latency := latencies[place]) is not None
        }
        whole = math.fsum(objective.slope(w, g) * g for w, g in known.values())
        for place, (weight, latency) in known.items():
            slopes[place] += objective.slope(weight, latency) / whole
    return slopes


def _weights(members: Sequence[Member]) -> Mapping[str, dict[int, float]]:
    """Return the places of the members of each section, with their weights."""
    found: dict[str, dict[int, float]] = {}
    for place, member in enumerate(members):
        for name, weight in (member.sections or {"": member.weight}).items():
            found.setdefault(name, {})[place] = weight
    return found
