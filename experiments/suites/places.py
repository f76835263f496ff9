"""Where the runs of a comparison take place: processes with processors of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue

from measure.cluster.topology import Domain, domains

Place = Sequence[int]
"""Numbers of the processors that one run may use."""


def everywhere() -> list[Place]:
    """One place, with all processors that this process may use."""
    return [sorted(os.sched_getaffinity(0))]


def side_by_side(count: int, cores: int, known: Sequence[Domain] | None = None) -> list[Place]:
    """``count`` places of ``cores`` cores that share a last-level cache, one processor of each.

    ``known`` are the cores there are, by default those that this process may use. Raises
    :class:`ValueError` if there are too few.
    """
    found = [
        [core[0] for core in domain[start : start + cores]]
        for domain in (domains() if known is None else known)
        for start in range(0, len(domain) - cores + 1, cores)
    ]
    if len(found) < count:
        raise ValueError(f"room for {len(found)} runs of {cores} cores each; needed: {count}")
    return found[:count]


def processes(places: Sequence[Place]) -> ProcessPoolExecutor:
    """A process at each place, begun when it is first needed."""
    context = get_context("spawn")
    free: SimpleQueue[Place] = context.SimpleQueue()
    for place in places:
        free.put(place)
    return ProcessPoolExecutor(len(places), context, _settle, (free,))


def _settle(free: SimpleQueue[Place]) -> None:
    os.sched_setaffinity(0, free.get())
