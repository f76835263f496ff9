"""One process a GPU, each with the next case once it is free."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

Case = TypeVar("Case")
Bench = AbstractContextManager[Callable[[Case], Any]]


def map_in_processes(
    cases: Iterable[Case], gpus: list[str], bench: Bench[Case]
) -> Iterator[tuple[Case, Any]]:
    """Yield each case, and what ``bench`` makes of it, as it becomes known.

    Every process enters its copy of ``bench`` and then sees only its own of ``gpus``, which are
    named as CUDA_VISIBLE_DEVICES names them, and its share of the processors. ``cases`` are
    asked for one by one, when they are due. If a process dies its case is lost; others go on.
    """
    context = get_context("spawn")
    waiting = iter(cases)
    busy: dict[Connection, Case] = {}

    def give(connection: Connection) -> None:
        case = next(waiting, None)
        connection.send(case)
        if case is not None:
            busy[connection] = case

    crew = []
    for gpu, cpus in zip(gpus, _shares(len(gpus)), strict=True):
        ours, theirs = context.Pipe()
        crew.append(context.Process(target=_serve, args=(theirs, gpu, cpus, bench), daemon=True))
        crew[-1].start()
        theirs.close()
        give(ours)
    while busy:
        for connection in wait(list(busy)):
            case = busy.pop(connection)
            try:
                outcome = connection.recv()
            except EOFError:
                print(f"{case}: its process ended", flush=True)
                continue
            yield case, outcome
            give(connection)
    for process in crew:
        process.join()


def _shares(count: int) -> list[list[int]]:
    """Return the processors in ``count`` parts of neighbours; all for everyone, if there are too
    few."""
    cpus = sorted(os.sched_getaffinity(0))
    size = len(cpus) // count
    return [cpus[i * size : (i + 1) * size] or cpus for i in range(count)]


def _serve(connection: Connection, gpu: str, cpus: list[int], bench: Bench[Any]) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    os.sched_setaffinity(0, cpus)
    with bench as run:
        for case in iter(connection.recv, None):
            connection.send(run(case))
