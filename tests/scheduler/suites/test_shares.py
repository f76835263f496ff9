"""Who gets how many of the trials and of the finalists."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.scheduler.suites.six_products import HEAVY, SPACES, Six, finalists, shares, suite, tuned
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Candidate, Measurement, Status
from tilewright.scheduler.suites.allocation import (
    CONTENDERS,
    by_gradient,
    by_part,
    equally,
    in_turn,
)
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.workloads.workload import Workload


def test_each_gets_a_batch_before_any_gets_a_second(database: Database) -> None:
    machine = Six()
    tuned(database, machine)
    workloads = [job.workload for job in machine.jobs]
    assert workloads[: len(SPACES)] == [space.workload for space in SPACES]


def test_few_trials_are_shared_by_all(database: Database) -> None:
    machine = Six()
    tuned(database, machine, trials=8)
    assert set(shares(machine)) == {space.workload.key for space in SPACES}


def test_what_weighs_most_gets_the_most_trials(database: Database) -> None:
    machine = Six()
    tuned(database, machine)
    counts = shares(machine)
    heavy = {SPACES[place].workload.key for place in HEAVY}
    most = {key for key, _ in counts.most_common(len(HEAVY))}
    assert most == heavy


def test_what_weighs_most_gets_the_most_finalists(tmp_path: Path) -> None:
    found = []
    for worths in (by_part, equally):
        machine = Six()
        with Database(tmp_path / f"{worths.__name__}.db") as database:
            tuned(database, machine, trials=192, worths=worths)
        found.append(finalists(machine))
    by_worth, equal = found
    light = [count for place, count in enumerate(by_worth) if place not in HEAVY]
    assert max(light) < min(equal) <= min(by_worth[place] for place in HEAVY)
    assert max(by_worth) > 2 * max(equal)


def test_of_many_that_are_right_a_share_is_compared_of_what_weighs_little_too(
    database: Database,
) -> None:
    machine = Six()
    result = tuned(database, machine, trials=960, allocation=in_turn)
    for place, compared in enumerate(finalists(machine)):
        if place not in HEAVY:
            task = result.tasks[place]
            right = task.trials - sum(task.failures.values())
            assert compared == int(CONTENDERS * right) > 8


def test_equal_shares_are_equal(database: Database) -> None:
    machine = Six()
    tuned(database, machine, allocation=in_turn)
    assert set(shares(machine).values()) == {16}


class Learning(Six):
    """Whatever is tried, each trial of a product is a little faster than the one before: those that
    weigh most have much to gain, and slowly, the others little and soon."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[Workload, Schedule], float] = {}
        self._tried: Counter[Workload] = Counter()

    def _measure(self, candidate: Candidate) -> Measurement:
        work, schedule, final = candidate.job.workload, candidate.schedule, candidate.job.final
        if not final:
            self._tried[work] += 1
            heavy = work in {SPACES[place].workload for place in HEAVY}
            gain = 10.0 / self._tried[work] ** 0.5 if heavy else 1.0 / self._tried[work]
            self._known[work, schedule] = 1e-3 * (1.0 + gain)
        latency, name = self._known[work, schedule], candidate.job.round
        return Measurement(schedule, Status.OK, latency, (latency,), round=name, started_at=1.0)


def test_the_gradient_needs_fewer_trials_than_equal_shares(tmp_path: Path) -> None:
    histories = []
    for allocation, trials in ((by_gradient, 96), (in_turn, 192)):
        with Database(tmp_path / f"{trials}.db") as database:
            histories.append(tuned(database, Learning(), trials, allocation=allocation).history)
    reached = histories[0][-1][2]
    assert next((n for n, _, value in histories[1] if value <= reached), 192) > 1.5 * 96


def test_a_workload_without_a_right_kernel_does_not_starve_the_others(database: Database) -> None:
    machine = Six(fails=(1,))
    result = tuned(database, machine, trials=128)
    assert result.value is None
    assert result.tasks[1].best is None
    assert result.tasks[1].trials <= 128 / 6 + 16
    assert all(task.best is not None for i, task in enumerate(result.tasks) if i != 1)


def test_the_mean_of_speedups_shares_trials_by_what_is_won(tmp_path: Path) -> None:
    baselines = [Baseline(space.workload, numpy_seconds=2e-3) for space in SPACES]
    with Database(tmp_path / "a.db") as database:
        result = tuned(database, Six(), objective=Objective.SPEEDUP, baselines=baselines, trials=96)
    assert result.value is not None
    latencies = [task.latency for task in result.tasks]
    weights = [member.weight for member in suite().members]
    logs = [w * np.log(2e-3 / (g or 1.0)) for w, g in zip(weights, latencies, strict=True)]
    assert result.value == pytest.approx(np.exp(sum(logs) / sum(weights)))
    values = [value for _, _, value in result.history]
    assert values == sorted(values)
