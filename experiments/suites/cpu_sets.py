"""Run a comparison in processes that have sets of CPUs of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

from tilewright.measure.cluster.topology import Domain, domains

CpuSet = Sequence[int]
"""Numbers of the processors that one run may use."""

Given = ParamSpec("Given")
Found = TypeVar("Found")


def everywhere() -> list[CpuSet]:
    """Return one place, with all processors that this process may use."""
    return [sorted(os.sched_getaffinity(0))]


def side_by_side(count: int, cores: int, known: Sequence[Domain] | None = None) -> list[CpuSet]:
    """Return ``count`` places of ``cores`` cores that share a last-level cache, one processor of
    each.

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


class Processes:
    """Calls functions, each call in a process of its own at one of ``places`` that is free: one
    that dies takes nobody along. A context manager, which waits for all."""

    def __init__(self, places: Sequence[CpuSet]) -> None:
        self._free: SimpleQueue[CpuSet] = SimpleQueue()
        for place in places:
            self._free.put(place)
        self._threads = ThreadPoolExecutor(len(places))

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def submit(
        self, function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs
    ) -> Future[Found]:
        """Run ``function`` as soon as a place is free; the future has its result or its error."""
        return self._threads.submit(self._call, partial(function, *args, **kwargs))

    def _call(self, function: Callable[[], Found]) -> Found:
        place = self._free.get()
        try:
            with ProcessPoolExecutor(1, get_context("spawn"), _settle, (place,)) as process:
                return process.submit(function).result()
        finally:
            self._free.put(place)


def _settle(place: CpuSet) -> None:
    os.sched_setaffinity(0, place)
