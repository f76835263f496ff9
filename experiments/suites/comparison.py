"""The task scheduler and equal shares on one suite, and their winners against each other."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import Executor as Processes
from contextlib import closing
from functools import partial
from typing import Any

from experiments.suites.winners import described, latencies_of_winners, weighted_sums
from measure.database import Database
from scheduler.defaults import local_executor
from scheduler.suites.allocation import (
    Allocation,
    Worths,
    by_gradient,
    by_part,
    equally,
    in_turn,
)
from scheduler.suites.suite import Suite
from scheduler.suites.tuner import SuiteTuner
from spaces.target import detect_target

TRIALS = 1_000_000  # more than there is time for
TIMES = 5  # that the winners are compared, which takes seconds
GRADIENT, EQUAL = "by gradient", "equal shares"
CONTENDERS: dict[str, tuple[Allocation, Worths, float]] = {
    GRADIENT: (by_gradient, by_part, 1.0),
    EQUAL: (in_turn, equally, 2.0),
}
"""How trials and finalists are given, and the time allowed, in units of ``--seconds``."""


def compare(
    pool: Processes,
    suite: Suite,
    threads: int,
    seconds: float,
    seed: int,
    trials: int = TRIALS,
    side_by_side: bool = False,
) -> dict[str, Any]:
    """Both runs of one seed, and their winners timed in turns, each by a process of ``pool``.

    Where they go ``side_by_side``, the shorter one is followed by another like it, whose result is
    dropped: the longer one is to have no quieter machine in its second half.
    """
    names = list(CONTENDERS) if seed % 2 == 0 else list(reversed(CONTENDERS))
    begin = partial(pool.submit, _run, suite, threads, seconds=seconds, seed=seed, trials=trials)
    begun = {name: begin(name) for name in names}
    if side_by_side:
        begun[GRADIENT].add_done_callback(lambda _: begin(GRADIENT))
    runs = {name: run.result() for name, run in begun.items()}
    latencies = pool.submit(_timed_in_turns, suite, threads, runs).result()
    sums = weighted_sums(suite, runs, latencies)
    ratio = sums[GRADIENT] / sums[EQUAL] if sums else None
    found = {"latencies_s": latencies, "weighted_sums_s": sums}
    return {"seed": seed, "ratio": ratio, **found, "runs": runs}


def _run(
    suite: Suite, threads: int, name: str, *, seconds: float, seed: int, trials: int
) -> dict[str, Any]:
    """One run from an empty database."""
    allocation, worths, share = CONTENDERS[name]
    target = detect_target("cpu", threads)
    with (
        closing(local_executor(target)) as executor,
        tempfile.TemporaryDirectory() as folder,
        Database(f"{folder}/tuning.db") as database,
    ):
        tuner = SuiteTuner(
            *(suite, target, database, executor),
            allocation=allocation,
            seed=seed,
            worths=worths,
        )
        return described(tuner.run(trials, share * seconds))


def _timed_in_turns(
    suite: Suite, threads: int, runs: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, float]]:
    return latencies_of_winners(suite, detect_target("cpu", threads), runs, TIMES)
