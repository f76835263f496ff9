"""The time that kernels of fixed sizes take to serve a call of any size.

A call of ``m`` rows is served by a kernel of ``s`` rows in one of two ways. If ``s <= m`` it
computes the first ``s`` rows, and the remaining rows are served as a call of their own. If
``s > m`` the rows are copied into arrays of ``s`` rows, or the kernel takes the number of rows at
the call, if it can. Where a larger call has gone before, such
a kernel need not copy: it begins earlier, and some rows are computed twice. The time of the copy is
counted all the same, so that what is counted for ``m`` rows does not depend on the rows before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, inf

import numpy as np

from tilewright.measure.cpu.cache_flush import flush_bytes
from tilewright.scheduler.dispatch.family import Family
from tilewright.scheduler.machine import measured_peaks
from tilewright.spaces.target import Target


@dataclass(frozen=True)
class Extra:
    """Seconds that are spent beside kernels: for each piece of a call, for each copy, and for each
    row that is copied.

    ``shared`` is the time to read the arrays that every piece reads, such as weights, from memory.
    Records of products are made on arrays that are in a cache. In a model they are not, for other
    layers have run since.
    """

    piece: float
    copy: float
    row: float
    shared: float = 0.0

    def seconds(self, latency: float) -> float:
        """Return the time of a kernel of this latency where it reads the shared arrays from memory,
        partly while it computes: the root of the sum of squares lies between the larger and the
        sum."""
        return hypot(latency, self.shared)


REACHED = 2 / 3
"""Share of a core's bandwidth that kernels of few rows reach, in ``experiments/dispatch``."""
MAIN_BANDWIDTH = 2e10
"""Bytes a second that one core reads from memory, where nobody measured it."""
CPU_PIECE, CPU_COPY, CPU_BANDWIDTH = 3e-6, 10e-6, 5e9
GPU_PIECE, GPU_COPY, GPU_BANDWIDTH = 8e-6, 30e-6, 1e12
"""Seconds, and bytes a second: a CPU's as found on the machine of ``experiments/dispatch``, a
GPU's are guesses."""


def extra_for(family: Family, size: int, target: Target) -> Extra:
    """Return the cost of calls in pieces on a target; ``size`` rows say how large arrays are. It is
    infinite where calls cannot be cut."""
    work, moved = family.at(size), family.moved_bytes(size)
    if not family.independent:  # neither pieces nor copies are possible
        return Extra(inf, inf, 0.0)
    if target.kind != "cpu":
        return Extra(GPU_PIECE, GPU_COPY, moved / size / GPU_BANDWIDTH)
    peaks = measured_peaks(target)
    bandwidth = REACHED * ((peaks and peaks.main_bandwidth) or MAIN_BANDWIDTH)
    in_cache = flush_bytes(work) == 0  # where records are made
    shared = max(0, work.least_bytes - moved) / bandwidth if in_cache else 0.0
    return Extra(CPU_PIECE, CPU_COPY, moved / size / CPU_BANDWIDTH, shared)


Begin = Callable[[int, np.ndarray], np.ndarray]
"""The choice, for a number of rows and the times of all ways (sets, kernels), of a kernel for each
set."""


@dataclass(frozen=True)
class Times:
    """The times of kernels by their sizes; ``opened`` has, of kernels that take fewer rows at a
    call, those of 0 to as many."""

    seconds: Mapping[int, float]
    opened: Mapping[int, Sequence[float]] = field(default_factory=dict)

    def of_fewer(self, size: int, most: int) -> np.ndarray:
        """Return the times of 0 to ``most`` rows by the open kernel of a size; infinite where it
        does not serve them."""
        found = np.full(most + 1, np.inf)
        known = self.opened.get(size, ())[: min(size, most + 1)]
        found[: len(known)] = known
        return found


def serving_seconds(
    sets: Sequence[Sequence[int]], times: Times, most: int, extra: Extra
) -> np.ndarray:
    """Return the time of calls of 0 to ``most`` rows (columns) by the kernels of each set
    (rows)."""
    width = max(map(len, sets))
    sizes = np.array([[*each, *[each[0]] * (width - len(each))] for each in sets])
    found = _recurrence(sizes, times, most, extra, lambda _, ways: ways.argmin(axis=1))
    for place, each in enumerate(sets):
        for size in each:
            if size <= most:  # a call of the whole arrays
                found[place, size] = min(found[place, size], times.seconds[size])
    return found


def _recurrence(
    sizes: np.ndarray, times: Times, most: int, extra: Extra, begin: Begin
) -> np.ndarray:
    """Return the time of calls of 0 to ``most`` rows (columns) by the ``sizes`` of each set (rows),
    where ``begin`` chooses the kernel that begins a call: what remains is a call of its own."""
    unique, places = np.unique(sizes, return_inverse=True)
    fewer = np.array([times.of_fewer(int(size), most) for size in unique])
    at = places.reshape(sizes.shape)
    own = np.vectorize(times.seconds.__getitem__, otypes=[float])(sizes)
    every = np.arange(len(sizes))
    found = np.zeros((len(sizes), most + 1))
    for rows in range(1, most + 1):
        ways = _ways(sizes, own, found, every[:, None], rows, extra)
        ways = np.minimum(ways, fewer[at, rows])
        found[:, rows] = ways[every, begin(rows, ways)]
    return found


def _ways(
    sizes: np.ndarray,
    own: np.ndarray,
    found: np.ndarray,
    every: np.ndarray,
    rows: int,
    extra: Extra,
) -> np.ndarray:
    """Return the time of a call of so many rows for each kernel that may begin it."""
    then = found[every, np.maximum(rows - sizes, 0)] + extra.piece
    copied = extra.copy + extra.row * (sizes + rows)
    return own + np.where(sizes <= rows, then, copied)


def choices(sizes: Sequence[int], times: Times, most: int, extra: Extra) -> list[int]:
    """Return the size of the kernel that begins a call of 1 to ``most`` rows, where all kernels of
    these sizes may be used. The first entry, for no rows, has no meaning."""
    ordered = np.array([sorted(sizes, reverse=True)])
    chosen = [0]

    def begin(rows: int, ways: np.ndarray) -> np.ndarray:
        least = ways[0].min()
        if rows in sizes and times.seconds[rows] <= least + extra.piece:
            place = np.flatnonzero(ordered[0] == rows)[:1]
        else:
            place = np.flatnonzero(ways[0] <= least * (1 + 1e-9))[:1]  # the largest of equal ones
        chosen.append(int(ordered[0, place[0]]))
        return place

    _recurrence(ordered, times, most, extra, begin)
    return chosen
