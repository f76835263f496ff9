"""Quantities that CPU templates compute alike: the use of caches and of threads.

Names and units are those of ``spaces.quantities``.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import LINE, LINE_BYTES, PAGE
from tilewright.spaces.cpu.target import CpuTarget

USABLE = 0.75
"""The share of a cache that a block can keep while other data streams through."""
BY_CHANCE = 0.5
"""The share of L2 that runs can use if each lies on a page of its own, as pages lie in memory by
chance."""
CALL_INSTRUCTIONS = 20.0
"""Instructions of a function such as ``exp`` on a vector, roughly."""
FAR_BYTES = 16 << 20
"""The most bytes of L3 that a core can count on: no processor with many cores has more for each."""


def stays_far(cpu: CpuTarget, size: Any) -> Any:
    """Tell whether ``size`` bytes stay in L3.

    A virtual machine sees the L3 of a whole processor, part of which the processor's other cores
    fill.
    """
    return size <= USABLE * min(cpu.l3_bytes, cpu.cores * FAR_BYTES)


def packing_passes(cpu: CpuTarget, size: Any) -> Any:
    """Compute how often each byte moves if ``size`` bytes are packed at a time.

    It is read and written, and what L2 has no room for is also loaded before it is written.
    """
    return np.where(size <= USABLE * cpu.l2_bytes, 2, 3)


def near_reach(run: Any, apart: int) -> Any:
    """Compute the share of L1 that runs of ``run`` bytes can use, ``apart`` bytes from one to the
    next.

    The place within a page selects a set of L1, and runs begin only at multiples of the greatest
    common divisor of ``apart`` and a page.
    """
    return np.minimum(1.0, run / gcd(apart, PAGE))


def middle_reach(run: Any, apart: int) -> Any:
    """Compute the share of L2 that such runs can use."""
    return near_reach(run, apart) * (BY_CHANCE if apart >= PAGE else 1.0)


def line_turns(cpu: CpuTarget, rows: Any, apart: int) -> Any:
    """Compute how often a line comes to L1 while floats of ``rows`` rows are read column by column.

    The rows are ``apart`` bytes apart. A line comes once, or for each of its floats if other rows
    take its set.
    """
    return np.where(rows <= lines_held(cpu, apart), 1, LINE)


def rows_without_conflict(cpu: CpuTarget, apart: int) -> int:
    """Return the number of rows, ``apart`` bytes apart, of which L1 can hold a line each at a time.

    A way is as large as a page. Rows that are a multiple of a page apart fall into one set, which
    has as many lines as there are ways.
    """
    return cpu.l1_bytes // PAGE * (PAGE // gcd(apart, PAGE))


def lines_held(cpu: CpuTarget, apart: int) -> Any:
    """Compute how many of these lines L1 keeps while other data streams through."""
    return USABLE * cpu.l1_bytes * near_reach(LINE_BYTES, apart) / LINE_BYTES


def footprints(cpu: CpuTarget, near: Any, middle: Any) -> dict[str, Any]:
    """Return the quantities about the bytes that L1 and L2 have to keep."""
    return {
        "near_footprint": near,
        "near_fraction": near / cpu.l1_bytes,
        "middle_footprint": middle,
        "middle_fraction": middle / cpu.l2_bytes,
    }


def shares(cpu: CpuTarget, workers: Any, imbalance: Any) -> dict[str, Any]:
    """Return the quantities about workers who share the work; ``imbalance`` is the part of the
    busiest one over the mean."""
    return {
        "parallelism": workers,
        "worker_fraction": workers / cpu.threads,
        "imbalance": imbalance,
    }


def even_shares(cpu: CpuTarget, workers: Any, items: Any) -> dict[str, Any]:
    """Return these quantities for ``items`` of equal work."""
    return shares(cpu, workers, workers * ceil_div(items, workers) / items)
