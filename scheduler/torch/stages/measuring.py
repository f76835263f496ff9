"""Time stages, each once: the database keeps what a stage took on this machine.

Inputs are those of the last run, mostly in the caches. A stage has no workload of its own; its
record names a copy of what it gives, the least that it does.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import torch

from tilewright.measure.database import Database
from tilewright.measure.records.run import note
from tilewright.scheduler.torch.backend.replays import replayed
from tilewright.scheduler.turns import rounds
from tilewright.spaces.operators import workload
from tilewright.spaces.target import Target

COMMAND = "torch.compile stages"
ROUNDS, SECONDS = 5, 0.02
"""Rounds at least, and as many more as there are seconds for."""
LONG_ENOUGH = 2e-4
"""Seconds that the calls between two looks at the clock should take."""


def seconds_of(call: Callable[[], None], on_gpu: bool) -> float:
    """Return the least time of a call; on a GPU that of replays of a CUDA graph, if it can be
    captured."""
    call()
    timer = _clock(call, on_gpu)
    return min(seconds for (seconds,) in rounds([timer], ROUNDS, SECONDS))


def _clock(call: Callable[[], None], on_gpu: bool) -> Callable[[], float]:
    """Return what makes some calls and answers with the seconds of one."""
    if on_gpu:
        with suppress(RuntimeError):  # torch's words for what a graph may not do
            return replayed(lambda _: call(), [()])
        torch.cuda.synchronize()

    def timed(count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            call()
        if on_gpu:
            torch.cuda.synchronize()
        return (time.perf_counter() - began) / count

    return partial(timed, max(1, min(1000, round(LONG_ENOUGH / max(timed(1), 1e-7)))))


def session_of(groups: Sequence[str], target: Target) -> str:
    """Return the name of all records of a stage of these groups, in whichever order, on a machine
    with this version of torch."""
    words = (sorted(groups), target.fingerprint, torch.__version__)
    return "stage " + hashlib.sha256(repr(words).encode()).hexdigest()[:24]


def remembered(database: Database | None, session: str) -> float | None:
    """Return the time of a stage on record, the latest one."""
    for run in reversed(list(database.runs(session)) if database else []):
        if run.library_seconds:
            return run.library_seconds
    return None


def remember(
    database: Database | None, session: str, target: Target, elements: int, seconds: float
) -> None:
    """Keep the time of a stage that gives so many elements."""
    if database is None:
        return
    run = note(
        workload("y[i] = x[i]", i=max(1, elements)),
        target,
        session=session,
        command=COMMAND,
        versions={"torch": torch.__version__},
        reason="timed a stage",
        library_seconds=seconds,
    )
    database.begin_run(run)
