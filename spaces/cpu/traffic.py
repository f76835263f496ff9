"""Quantities that all CPU templates work out alike: what is in use of caches and of threads.

Names and units are those of ``spaces.quantities``.
"""

from __future__ import annotations

from typing import Any

from spaces.algebra.integers import ceil_div
from spaces.cpu.target import CpuTarget


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
