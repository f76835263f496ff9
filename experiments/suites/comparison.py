"""The task scheduler and equal shares on one suite, and their winners against each other."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from experiments.suites.cpu_sets import Processes
from experiments.suites.winners import (
    Latencies,
    compared_winners,
    described,
    medians,
    standard_error,
    weighted_sums,
)
from tilewright.measure.database import Database
from tilewright.scheduler.defaults import local_executor
from tilewright.scheduler.suites.allocation import (
    Allocation,
    Worths,
    by_gradient,
    by_part,
    equally,
    in_turn,
)
from tilewright.scheduler.suites.suite import Suite
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.target import detect_target

TRIALS = 1_000_000  # more than there is time for
LATER_SEEDS = 1000  # difference between the seeds of runs in the second half and in the first
COMPARISONS = 25  # comparisons of the winners, which take one or two minutes
TOGETHER = 5  # of these, so many by one process
GRADIENT, EQUAL = "by gradient", "equal shares"
LATER = "by gradient, later"
CONTENDERS: dict[str, tuple[Allocation, Worths, float]] = {
    GRADIENT: (by_gradient, by_part, 1.0),
    EQUAL: (in_turn, equally, 2.0),
}
"""The rules for trials and finalists, and the time allowed, in units of ``--seconds``."""


def compare(
    pool: Processes,
    suite: Suite,
    threads: int,
    seconds: float,
    seed: int,
    trials: int = TRIALS,
    side_by_side: bool = False,
    ended: Callable[[int, str, dict[str, Any]], None] = lambda *run: None,
    compared: Callable[[dict[str, Any]], None] = lambda found: None,
) -> dict[str, Any]:
    """Return both runs of one seed, and their winners timed in turns, each by a process of
    ``pool``.

    Where they go ``side_by_side``, the shorter one is followed by one of another seed: the longer
    one is to have no quieter machine in its second half, and nothing depends on that other one.
    ``ended`` hears of each run, and of the fault of one that failed; ``compared`` of what is known
    after every few comparisons.
    """
    names = list(CONTENDERS) if seed % 2 == 0 else list(reversed(CONTENDERS))
    begin = partial(pool.submit, _run, suite, threads, seconds=seconds, trials=trials)
    begun = {name: begin(name, seed=seed) for name in names}
    runs: dict[str, dict[str, Any]] = {}

    def end(name: str) -> None:
        fault = begun[name].exception()
        ended(seed, name, {"fault": repr(fault)} if fault else begun[name].result())
        if not fault:
            runs[name] = begun[name].result()
        elif name in CONTENDERS:
            raise fault

    end(GRADIENT)
    if side_by_side:
        begun[LATER] = begin(GRADIENT, seed=seed + LATER_SEEDS)
        end(LATER)
    end(EQUAL)
    latencies: list[Latencies] = []
    while len(latencies) < COMPARISONS:
        latencies += pool.submit(_compared, suite, threads, runs).result()
        found = {"seed": seed, **_judged(suite, runs, latencies), "runs": runs}
        compared(found)
    return found


def _judged(
    suite: Suite, runs: Mapping[str, object], compared: Sequence[Latencies]
) -> dict[str, Any]:
    """Return the ratios of the sums to that of equal shares, and their standard errors by what the
    comparisons say one by one."""
    latencies = medians(compared)
    sums = weighted_sums(suite, runs, latencies)
    each = [found for one in compared if (found := weighted_sums(suite, runs, one))]
    others = [name for name in sums if name != EQUAL]
    return {
        "ratios": {name: sums[name] / sums[EQUAL] for name in others},
        "standard_errors": {
            name: standard_error([one[name] / one[EQUAL] for one in each]) for name in others
        },
        "latencies_s": latencies,
        "weighted_sums_s": sums,
        "compared_s": compared,
    }


def _run(
    suite: Suite, threads: int, name: str, *, seconds: float, seed: int, trials: int
) -> dict[str, Any]:
    """Return one run from an empty database."""
    allocation, worths, share = CONTENDERS[name]
    target = detect_target("cpu", threads)
    with (
        closing(local_executor(target)) as executor,
        tempfile.TemporaryDirectory() as folder,
        Database(f"{folder}/tuning.db") as database,
    ):
        tuner = Tuner(
            *(suite, target, database, executor),
            allocation=allocation,
            seed=seed,
            worths=worths,
        )
        return described(tuner.run(trials, share * seconds))


def _compared(suite: Suite, threads: int, runs: Mapping[str, Mapping[str, Any]]) -> list[Latencies]:
    return compared_winners(suite, detect_target("cpu", threads), runs, TOGETHER)
