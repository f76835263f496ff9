"""Score how well a search did in its replayed runs: one value a run for each measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from tilewright.scheduler.replay.baseline import as_slowest, calculated_baseline, exact_baseline
from tilewright.scheduler.replay.intervals import Estimate, mean, median, share
from tilewright.scheduler.replay.recording import Recording
from tilewright.scheduler.replay.run import Run

CHECKPOINTS = (16, 64, 128, 256)
"""Evaluations after which it is asked how fast the best so far is."""

Baseline = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Replays:
    """The runs of one search on one recording, each of ``trials`` evaluations or of all schedules
    that there are."""

    recording: Recording
    runs: Sequence[Run]
    trials: int

    @cached_property
    def best(self) -> np.ndarray:
        """Seconds of the best so far, float64 [runs, trials]; infinite until one ran."""
        return np.array(
            [np.minimum.accumulate(_padded(run.seconds, self.trials)) for run in self.runs]
        )

    @cached_property
    def spent(self) -> np.ndarray:
        """Recorded seconds that evaluations cost so far, float64 [runs, trials]; NaN if the record
        lacks them."""
        costs = [
            np.full(len(run.seconds), np.nan) if run.costs is None else run.costs
            for run in self.runs
        ]
        return np.array([np.cumsum(_padded(cost, self.trials, 0.0)) for cost in costs])

    def reached(self, fraction: float) -> np.ndarray:
        """Evaluations after which each run's best reached this fraction of the optimum; infinite
        where it did not."""
        there = self.recording.optimum / self.best >= fraction
        return np.where(there.any(axis=1), there.argmax(axis=1) + 1.0, np.inf)


@dataclass(frozen=True)
class Measure:
    """A question asked of each run: what it is called in data and in words, what the answer means,
    the answer of each run, and how answers are summed up."""

    key: str
    label: str
    meaning: str
    values: Callable[[Replays], np.ndarray]
    estimate: Callable[[np.ndarray], Estimate]


def measures(trials: int, by_time: bool = False) -> list[Measure]:
    """Return the measures of runs of so many evaluations; ``by_time`` adds what the record's own
    compile and benchmark times say."""
    points = sorted({*(n for n in CHECKPOINTS if n < trials), trials})
    made = [
        *map(_fraction_at, points),
        Measure(
            "reached_99",
            "runs that reach 99 %",
            f"share of the runs that get to 0.99 of the optimum in {trials} evaluations",
            lambda replays: np.isfinite(replays.reached(0.99)),
            share,
        ),
        *map(_evaluations_to, (95, 99)),
        *_performances(trials),
        Measure(
            "search_ms",
            "search per evaluation, ms",
            "what asking and telling took on this machine",
            _search_milliseconds,
            mean,
        ),
    ]
    timed = [*map(_fraction_in_time_of, points), *map(_seconds_to, (95, 99))] if by_time else []
    return made + timed


def _fraction_at(evaluations: int) -> Measure:
    return Measure(
        f"fraction_{evaluations}",
        f"fraction of the optimum at {evaluations}",
        f"the optimum's time over that of the best found in {evaluations} evaluations; 1 is the "
        "optimum",
        partial(_fraction, evaluations=evaluations),
        mean,
    )


def _evaluations_to(percent: int) -> Measure:
    return Measure(
        f"evaluations_to_{percent}",
        f"evaluations to {percent} %",
        f"the median run gets to 0.{percent} of the optimum after so many",
        lambda replays: replays.reached(percent / 100),
        median,
    )


def _performances(trials: int) -> Iterator[Measure]:
    yield Measure(
        "p",
        f"P over 1..{trials}",
        "how far the best so far is from random draws (0) to the optimum (1), mean of all "
        "evaluations (Willemsen et al. 2024); random draws as they are expected exactly",
        partial(_performance, baseline=exact_baseline),
        mean,
    )
    yield Measure(
        "p_calculated",
        "P, calculated baseline",
        "the same against the published code's estimate of random draws, which is biased",
        partial(_performance, baseline=calculated_baseline),
        mean,
    )


def _fraction_in_time_of(evaluations: int) -> Measure:
    return Measure(
        f"fraction_in_time_{evaluations}",
        f"fraction of the optimum in the time of {evaluations}",
        f"as above, in the recorded time that {evaluations} average schedules take to compile and "
        "time",
        partial(_fraction_in_time, evaluations=evaluations),
        mean,
    )


def _seconds_to(percent: int) -> Measure:
    return Measure(
        f"seconds_to_{percent}",
        f"seconds to {percent} %",
        f"recorded compile and benchmark time until the median run gets to 0.{percent}",
        partial(_spent_until, fraction=percent / 100),
        median,
    )


def _fraction(replays: Replays, evaluations: int) -> np.ndarray:
    return replays.recording.optimum / replays.best[:, evaluations - 1]


def _performance(replays: Replays, baseline: Baseline) -> np.ndarray:
    """Return ``P`` of each run; NaN where random draws find the optimum at once."""
    seconds, optimum = replays.recording.seconds, replays.recording.optimum
    expected = baseline(seconds, replays.trials)
    open_ = expected > optimum * (1 + 1e-9)  # from then on there is nothing to gain
    if not open_.any():
        return np.full(len(replays.runs), np.nan)
    gained = expected - as_slowest(replays.best, seconds)
    return np.asarray((gained[:, open_] / (expected[open_] - optimum)).mean(axis=1))


def _search_milliseconds(replays: Replays) -> np.ndarray:
    return np.array(
        [
            np.nan if run.search_seconds is None else 1e3 * run.search_seconds / len(run.seconds)
            for run in replays.runs
        ]
    )


def _fraction_in_time(replays: Replays, evaluations: int) -> np.ndarray:
    """Return the fraction when as much was spent as so many schedules cost on average."""
    assert replays.recording.costs is not None
    allowed = evaluations * replays.recording.costs.mean()
    done = (replays.spent <= allowed).sum(axis=1)
    best = np.column_stack([np.full(len(done), np.inf), replays.best])
    return replays.recording.optimum / best[np.arange(len(done)), done]


def _spent_until(replays: Replays, fraction: float) -> np.ndarray:
    reached = replays.reached(fraction)
    place = np.where(np.isfinite(reached), reached, 1).astype(int) - 1
    return np.where(np.isfinite(reached), replays.spent[np.arange(len(place)), place], np.inf)


def _padded(values: np.ndarray, count: int, filler: float = np.inf) -> np.ndarray:
    return np.concatenate([values, np.full(count - len(values), filler)])
