"""Quantities that CPU templates work out alike: what is in use of caches and of threads.

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
"""Share of a cache that a block can hold on to while other data streams through."""
BY_CHANCE = 0.5
"""Share of L2 that runs on pages of their own fill, which lie in memory by chance."""
FAR_BYTES = 16 << 20
"""Bytes of L3 that a core can count on at most: no processor with many cores has more for each."""


def stays_far(cpu: CpuTarget, size: Any) -> Any:
    """Whether ``size`` bytes stay in L3. A virtual machine sees the L3 of a whole processor, whose
    other cores it does not have and who fill their part of it."""
    return size <= USABLE * min(cpu.l3_bytes, cpu.cores * FAR_BYTES)


def packing_passes(cpu: CpuTarget, size: Any) -> Any:
    """How often each byte moves where ``size`` bytes are packed at a time: it is read and written,
    and what L2 has no room for comes there before it is written, too."""
    return np.where(size <= USABLE * cpu.l2_bytes, 2, 3)


def near_reach(run: Any, apart: int) -> Any:
    """The share of L1 that runs of ``run`` bytes find, ``apart`` bytes from one to the next: its
    sets are told apart by the place within a page, where runs begin at multiples of the common
    divisor only."""
    return np.minimum(1.0, run / gcd(apart, PAGE))


def middle_reach(run: Any, apart: int) -> Any:
    """The same of L2."""
    return near_reach(run, apart) * (BY_CHANCE if apart >= PAGE else 1.0)


def line_turns(cpu: CpuTarget, rows: Any, apart: int) -> Any:
    """How often a line comes to L1 while floats of ``rows`` rows, ``apart`` bytes from one to the
    next, are read column by column: once, or for each float if other rows take its set."""
    return np.where(rows <= lines_held(cpu, apart), 1, LINE)


def rows_without_conflict(cpu: CpuTarget, apart: int) -> int:
    """Of how many rows, ``apart`` bytes from one to the next, L1 can hold a line at a time: a way
    is a page, so that rows a multiple of a page apart all fall into one set, which has as many
    lines as there are ways."""
    return cpu.l1_bytes // PAGE * (PAGE // gcd(apart, PAGE))


def lines_held(cpu: CpuTarget, apart: int) -> Any:
    """How many of them it holds while other data streams through."""
    return USABLE * cpu.l1_bytes * near_reach(LINE_BYTES, apart) / LINE_BYTES


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
