"""Items are judged by many processes at a time, each on a core of its own."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any

AHEAD = 3
"""Items for each process that are handed out at a time."""


def worked_on(
    judged: Callable[[Any], dict[str, Any]], items: Iterator[Any], cores: Sequence[int], end: float
) -> Iterator[dict[str, Any]]:
    """Judge items, and yield outcomes in any order; none is handed out after the ``end``."""
    context = multiprocessing.get_context("spawn")
    free = context.Queue()
    for core in cores:
        free.put(core)
    pending: dict[Future[dict[str, Any]], Any] = {}
    with ProcessPoolExecutor(len(cores), context, _alone, (free,)) as pool:
        while True:
            more = AHEAD * len(cores) - len(pending) if time.monotonic() < end else 0
            for item in itertools.islice(items, more):
                pending[pool.submit(judged, item)] = item
            if not pending:
                return
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield {"item": pending.pop(future)} | _result(future)


def _result(future: Future[dict[str, Any]]) -> dict[str, Any]:
    error = future.exception()
    if error is None:
        return future.result()
    return {"kernels": 0, "wrong": [f"{type(error).__name__}: {error}"[:400]]}


def _alone(free: Any) -> None:
    """Keep a process to a core of its own."""
    os.sched_setaffinity(0, {free.get()})
