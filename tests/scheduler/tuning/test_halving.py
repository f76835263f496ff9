"""Who is compared once more, and who wins then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.scheduler.made_up_machine import Clock, MadeUpMachine
from tests.scheduler.tuning.made_up_runs import tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import (
    NUMPY,
    Candidate,
    ErrorKind,
    Job,
    Measurement,
    Result,
    Status,
)
from tilewright.measure.timing import usual_score
from tilewright.scheduler.testing.landscape import hills, hills_latency
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.halving import Halving
from tilewright.scheduler.tuning.pace import CPU, CUDA, Pacing
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.schedule import Schedule

SCHEDULES = [Schedule("made up", (("x", place),)) for place in range(9)]


def compared(halving: Halving, seconds: dict[int, float | None]) -> list[str]:
    """The rounds as which the results rank."""
    made = []
    for place, latency in seconds.items():
        status = Status.ERROR if latency is None else Status.OK
        made.append(Measurement(SCHEDULES[place], status, latency, round="final"))
    return [measurement.round for measurement in halving.take(made)]


def places(schedules: list[Schedule]) -> list[object]:
    return [schedule["x"] for schedule in schedules]


def test_half_go_on_until_one_is_left() -> None:
    halving = Halving(CPU.comparison.next)
    halving.begin(SCHEDULES, decides=False)
    compared(halving, {i: 1 + (i - 4) ** 2 for i in range(9)})
    assert places(halving.go_on()) == [4, 3, 5, 2, 6]
    halving = Halving(CPU.comparison.next)
    schedules = SCHEDULES
    for count in (5, 3, 2, 1):
        halving.begin(schedules, decides=False)
        compared(halving, {i: float(i) for i in places(schedules)})
        schedules = halving.go_on()
        assert len(schedules) == count
    (last,) = schedules
    halving.begin([last], decides=False)
    assert compared(halving, {last["x"]: 1.0}) == ["final"]
    assert halving.go_on() == []


def test_all_comparisons_count_and_slow_minutes_count_for_all() -> None:
    halving = Halving(lambda count: count - 1)
    halving.begin(SCHEDULES[:4], decides=False)
    compared(halving, {0: 1.00, 1: 1.02, 2: 1.04, 3: 1.10})
    halving.begin(halving.go_on(), decides=False)
    compared(halving, {0: 3.18, 1: 3.00, 2: 3.03})
    assert places(halving.go_on()) == [1, 2]


def test_those_who_go_on_are_compared_as_often_as_wanted_before_fewer_do() -> None:
    halving = Halving(CPU.comparison.next, times=3)
    schedules, counts = SCHEDULES[:8], []
    while schedules:
        halving.begin(schedules, decides=False)
        compared(halving, {i: float(i) for i in places(schedules)})
        counts.append(len(schedules))
        schedules = halving.go_on()
    assert counts == [8, 4, 4, 4, 2, 2, 2, 1]


def test_who_is_first_so_far_ranks_by_that_until_the_next_comparison() -> None:
    halving = Halving(CPU.comparison.next)
    behind = ["preliminary"] * 3
    halving.begin(SCHEDULES[:4], decides=False)
    assert compared(halving, {0: 3.0, 1: None, 2: 2.0, 3: 4.0}) == [*behind[:2], "final", behind[2]]
    halving.begin(halving.go_on(), decides=False)
    assert compared(halving, {2: 2.0, 0: 1.5}) == ["final", "preliminary"], "by their product"
    halving.begin(SCHEDULES[:4], decides=False)
    apart = [compared(halving, {place: 1.0}) for place in (3, 2, 1, 0)]
    assert apart == [["preliminary"]] * 4, "nobody knew who was first"


def test_what_fails_does_not_go_on() -> None:
    halving = Halving(CPU.comparison.next)
    halving.begin(SCHEDULES[:4], decides=False)
    compared(halving, {0: None, 1: 3.0, 2: 2.0, 3: 1.0})
    assert places(halving.go_on()) == [3, 2]
    halving.begin(SCHEDULES[2:4], decides=False)
    compared(halving, {2: None, 3: 1.0})
    assert places(halving.go_on()) == [3]
    halving = Halving(CPU.comparison.next)
    halving.begin(SCHEDULES[:3], decides=False)
    compared(halving, {0: None, 1: None, 2: None})
    assert halving.go_on() == []


@pytest.mark.parametrize(("kind", "decides"), [(CPU, True), (CUDA, False)])
def test_one_comparison_decides_where_it_is_told_to_or_is_all_there_is(
    kind: Pacing, decides: bool
) -> None:
    halving = Halving(kind.comparison.next)
    halving.begin(SCHEDULES, decides)
    assert set(compared(halving, dict.fromkeys(range(9), 1.0))) == {"final"}
    assert halving.go_on() == []


class Slowing(MadeUpMachine):
    """Latencies are off by some percent, and each comparison finds a slower machine."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = np.random.default_rng(seed)

    def _measure(self, candidate: Candidate) -> Measurement:
        made = super()._measure(candidate)
        if made.score is None:
            return made
        slower = (1.0 + 0.1 * len(self.compared)) * np.exp(self._random.normal(0.0, 0.03))
        return replace(made, score=float(made.score * slower))


@pytest.mark.parametrize("seed", range(3))
def test_who_lost_while_the_machine_was_faster_does_not_win(database: Database, seed: int) -> None:
    machine = Slowing(seed)
    result = tuner(hills(), database, machine).run(trials=48, seconds=600)
    assert [len(schedules) for schedules in machine.compared] == [8, 4, 4, 2, 2, 1]
    known = database.best(result.workload, result.target)
    assert known is not None
    assert result.best is not None
    assert known.schedule == result.best.schedule
    assert known.schedule in machine.compared[-1]


class BusyInTheEnd(MadeUpMachine):
    """Whoever is left is compared alone while something else has the machine."""

    def _measure(self, candidate: Candidate) -> Measurement:
        made = super()._measure(candidate)
        alone = candidate.job.final and len(self.compared[-1]) == 1
        if made.score is None or not candidate.job.final:
            return made
        samples = tuple(made.score * (2.5 if alone else 1.0) * (1 + i / 100) for i in range(5))
        return replace(made, clock="cpu", samples=samples, score=usual_score(samples))


def test_a_slow_minute_while_the_last_is_compared_is_not_its_latency(database: Database) -> None:
    machine = BusyInTheEnd()
    result = tuner(hills(), database, machine).run(trials=48, seconds=600)
    assert len(machine.compared[-1]) == 1
    assert result.best is not None
    assert result.best.schedule == machine.compared[-1][0]
    assert result.best.score == pytest.approx(hills_latency(result.best.schedule.values), rel=0.05)
    assert len(result.best.samples) == 5 * len(machine.compared)
    known = database.best(result.workload, result.target)
    assert known is not None
    assert known.measurement.score == result.best.score
    assert known.measurement.samples == result.best.samples


def test_what_an_earlier_run_compared_is_out_where_it_loses(database: Database) -> None:
    before = tuner(hills(), database, MadeUpMachine()).run(trials=48, seconds=600)
    machine = Slowing(0)
    after = tuner(hills(), database, machine).run(trials=480, seconds=600)
    assert before.best is not None
    assert after.best is not None
    assert before.best.schedule in machine.compared[0]
    assert before.best.schedule not in machine.compared[-1]
    assert after.best.schedule in machine.compared[-1]


def test_who_is_compared_first_is_checked_thoroughly(database: Database) -> None:
    machine = MadeUpMachine()
    tuner(hills(), database, machine).run(trials=48, seconds=600)
    finals = [job.thorough for job in machine.jobs if job.final]
    assert finals == [True] + [False] * 5
    assert not any(job.thorough for job in machine.jobs if not job.final)


def test_rivals_are_timed_in_all_comparisons_and_in_no_search(database: Database) -> None:
    machine, space = MadeUpMachine(), hills()
    baseline = Baseline(space.workload, numpy_seconds=1e-3)
    options = {"spaces": [space], "baselines": [baseline]}
    made = Tuner(space.workload, space.target, database, machine, **options)
    made.run(trials=48, seconds=600)
    assert [job.rivals for job in machine.jobs if job.final] == [(NUMPY,)] * 6
    assert {job.rivals for job in machine.jobs if not job.final} == {()}


FAILURES = [
    (Status.ERROR, ErrorKind.WRONG),
    (Status.ERROR, ErrorKind.CRASH),
    (Status.ERROR, ErrorKind.TIMEOUT),
    (Status.LOST, ErrorKind.WORKER_LOST),
]


class Failing(MadeUpMachine):
    """From a comparison on, those that were the fastest before fail in each."""

    def __init__(self, since: int, every: bool, status: Status, kind: ErrorKind) -> None:
        super().__init__()
        self._since, self._every, self._failure = since, every, (status, kind)
        self.failed: set[Schedule] = set()

    def _measure(self, candidate: Candidate) -> Measurement:
        made = super()._measure(candidate)
        if not candidate.job.final or len(self.compared) != self._since + 1:
            return made
        fastest = min(self.compared[-1], key=lambda s: hills_latency(s.values))
        if self._every or candidate.schedule == fastest:
            self.failed.add(candidate.schedule)
            status, kind = self._failure
            return replace(made, status=status, score=None, samples=(), error_kind=kind)
        return made


@pytest.mark.parametrize(("status", "kind"), FAILURES)
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("since", range(6))
def test_a_finalist_that_fails_in_any_round_never_wins(
    database: Database, since: int, every: bool, status: Status, kind: ErrorKind
) -> None:
    machine = Failing(since, every, status, kind)
    result = tuner(hills(), database, machine).run(trials=48, seconds=600)
    known = database.best(result.workload, result.target)
    assert machine.failed
    assert known is not None
    assert result.best is not None
    assert known.schedule == result.best.schedule
    if status is Status.ERROR:
        assert result.best.schedule not in machine.failed
        assert result.best.round == "final"


class Killed(Slowing):
    """Its run ends when so many comparisons are done and one more has begun."""

    together = 8

    def __init__(self, comparisons: int) -> None:
        super().__init__(seed=0)
        self._comparisons = comparisons

    def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
        if len(self.compared) > self._comparisons:
            raise RuntimeError("killed")
        return super().results(timeout, *jobs)


@pytest.mark.parametrize("comparisons", range(6))
def test_a_run_that_was_killed_between_comparisons_is_gone_on_with(
    database: Database, comparisons: int
) -> None:
    space, killed, machine = hills(), Killed(comparisons), MadeUpMachine()
    with pytest.raises(RuntimeError, match="killed"):
        tuner(space, database, killed).run(trials=48, seconds=600)
    known = database.best(space.workload, space.target)
    assert known is not None
    assert known.schedule == killed.compared[-1][0], "who was first so far"
    assert known.measurement.round == ("final" if comparisons else "search")
    result = tuner(space, database, machine).run(trials=8, seconds=600)
    assert result.resumed == 48
    assert not {*machine.searched[1:]} & {*killed.searched}  # the best is checked
    assert [len(schedules) for schedules in machine.compared] == [8, 4, 4, 2, 2, 1]
    assert result.best is not None
    assert result.best.round == "final"


def test_one_comparison_decides_where_there_is_no_time_for_more(
    database: Database, clock: Clock
) -> None:
    machine = MadeUpMachine(pause=0.25, clock=clock)
    result = tuner(hills(), database, machine).run(trials=1000, seconds=30)
    assert len(machine.compared) == 1
    assert result.best is not None
    assert result.best.round == "final"


def test_speeds_are_compared_where_both_were_measured() -> None:
    """A slow minute of one comparison changes no share."""
    halving = Halving(lambda count: count - 1)
    halving.begin(SCHEDULES[:3], decides=False)
    compared(halving, {0: 1.0, 1: 2.0, 2: 4.0})
    halving.begin(SCHEDULES[:2], decides=False)
    compared(halving, {0: 10.0, 1: 20.0})
    shares = halving.shares(SCHEDULES[0])
    assert places(list(shares)) == [0, 1, 2]
    assert list(shares.values()) == pytest.approx([1.0, 0.5, 0.25])
    halving.begin(SCHEDULES[:2], decides=True)
    compared(halving, {0: 1.0, 1: None})
    assert places(list(halving.shares(SCHEDULES[0]))) == [0, 2], "what proved wrong leads nothing"
    assert halving.shares(SCHEDULES[8]) == {}


def test_a_result_lists_the_best_few_by_their_share(database: Database) -> None:
    result = tuner(hills(), database, MadeUpMachine()).run(trials=48, seconds=600)
    assert result.best is not None
    first, *others = result.leaders
    assert (first.schedule, first.latency, first.share) == (
        result.best.schedule,
        result.best.score,
        1.0,
    )
    assert len({leader.schedule for leader in result.leaders}) == 5
    for before, after in zip(result.leaders, others, strict=False):
        assert before.share >= after.share
        assert after.latency == pytest.approx(first.latency / after.share)


def test_what_was_never_compared_is_listed_as_it_ranks(database: Database) -> None:
    """Such a run was interrupted, or had no time for a comparison."""
    stopped = iter(range(20))

    def stop(_: object) -> None:
        if next(stopped, None) is None:
            raise KeyboardInterrupt

    result = tuner(hills(), database, MadeUpMachine()).run(48, 600, on_progress=stop)
    assert result.best is not None
    assert result.best.round == "search"
    assert result.leaders[0].schedule == result.best.schedule
    assert result.leaders[0].share == 1.0
    assert all(leader.share <= 1.0 for leader in result.leaders)
