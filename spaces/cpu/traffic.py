"""Quantities that CPU templates work out alike: what is in use of caches and of threads.

Names and units are those of ``spaces.quantities``.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from spaces.algebra.integers import ceil_div
from spaces.cpu.abi import PAGE
from spaces.cpu.target import CpuTarget

BY_CHANCE = 0.5
"""Share of a cache that lines of scattered pages fill evenly."""


def reach(run: Any, apart: int) -> Any:
    """The share of a cache's sets that runs of ``run`` bytes find, ``apart`` bytes from one to the
    next. L1 takes its sets from a place within a page, where such runs begin at multiples of the
    common divisor only; so does L2, as pages lie in memory by chance."""
    share = np.minimum(1.0, run / gcd(apart, PAGE))
    return share * (BY_CHANCE if apart >= PAGE else 1.0)


def footprints(cpu: CpuTarget, near: Any, middle: Any) -> dict[str, Any]:
    """Bytes that L1 and L2 have to keep."""
    return {
        "near_footprint": near,
        "near_fraction": near / cpu.l1_bytes,
        "middle_footprint": middle,
        "middle_fraction": middle / cpu.l2_bytes,
    }


def shares(cpu: CpuTarget, workers: Any, imbalance: Any) -> dict[str, Any]:
    """How ``workers`` share what is to do; ``imbalance`` is the busiest one's part over the
    mean."""
    return {
        "parallelism": workers,
        "worker_fraction": workers / cpu.threads,
        "imbalance": imbalance,
    }


def even_shares(cpu: CpuTarget, workers: Any, items: Any) -> dict[str, Any]:
    """The same of ``items`` of equal work."""
    return shares(cpu, workers, workers * ceil_div(items, workers) / items)
