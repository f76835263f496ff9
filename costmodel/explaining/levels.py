"""Say how near a measured schedule is to the roof of each level of the hardware.

Each resource, had nothing else to be waited for, would need its amount of work over its peak rate:
the roofs of the roofline model (see ``costmodel.roofs.roofline``), one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.costmodel.roofs.peaks import MeasuredPeaks, peaks_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

ROOFS = (
    ("useful arithmetic", "useful_flops", "flops", "FLOP"),
    ("arithmetic, padding included", "flops", "flops", "FLOP"),
    ("instructions issued", "instructions", "instructions", "instructions"),
    ("near memory to registers", "register_bytes", "register_bandwidth", "B"),
    ("middle to near memory", "near_bytes", "near_bandwidth", "B"),
    ("far to middle memory", "middle_bytes", "middle_bandwidth", "B"),
    ("main memory", "main_bytes", "main_bandwidth", "B"),
    ("packing", "packing_bytes", "middle_bandwidth", "B"),
)
"""A level's name, its quantity (``spaces.quantities``), its peak (``Peaks``), and its unit."""
MOST = 1.1
"""The largest share of a latency. Work that would take longer was served nearer to the core when
calls were timed, or is overestimated."""


@dataclass(frozen=True)
class Level:
    """``amount`` of work in ``unit``; ``rate`` is the peak in ``unit`` a second; ``seconds`` is the
    least time for it, and ``share`` that over the measured latency: 1.0 is at the roof."""

    name: str
    unit: str
    amount: float
    rate: float
    seconds: float
    share: float


def nearest_roof(found: Sequence[Level]) -> Level | None:
    """Return the level that takes the largest share of a latency, of those that fit into it; None
    if there is none."""
    fit = [level for level in found if level.share <= MOST]
    return max(fit, key=lambda level: level.share, default=None)


def levels(
    space: Space, schedule: Schedule, latency: float, measured: MeasuredPeaks | None = None
) -> list[Level]:
    """Return the levels of a schedule that took ``latency`` seconds; those left out that its
    template says nothing of, or that have nothing to do."""
    quantities = space.quantities(space.rows([schedule]))
    peaks = peaks_for(space.workload, space.target, measured)
    found = []
    for name, quantity, peak, unit in ROOFS:
        amount, rate = float(quantities[quantity][0]), float(getattr(peaks, peak))
        if np.isfinite(amount) and amount > 0:
            seconds = amount / rate
            found.append(Level(name, unit, amount, rate, seconds, seconds / latency))
    return found
