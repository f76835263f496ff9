"""Tuning of several workloads, on a made-up machine that is quick and never noisy."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from costmodel.interfaces import Example
from measure.database import Database
from measure.executor import LocalExecutor
from measure.records.measurement import Candidate, ErrorKind, Job, Measurement, Result, Status
from scheduler.defaults import default_search
from scheduler.strategies.random_search import RandomSearch
from scheduler.strategies.search import Proposed, Search
from scheduler.suites.allocation import (
    CONTENDERS,
    Allocation,
    by_gradient,
    by_part,
    equally,
    in_turn,
)
from scheduler.suites.objective import Objective
from scheduler.suites.progress import SuiteProgress, SuiteResult
from scheduler.suites.shared_model import (
    LEADERS,
    SharedModel,
    SharingSearch,
    sharing_search,
)
from scheduler.suites.suite import Member, Suite
from scheduler.suites.tune import tune_suite
from scheduler.suites.tuner import SuiteTuner
from scheduler.testing.landscape import MACHINE, hills, hills_latency, knolls
from scheduler.tuning.progress import Stop
from scheduler.tuning.transfer import Transfer
from scheduler.tuning.yardstick import Yardstick
from spaces.errors import InputError
from spaces.schedule import Schedule
from spaces.space import Space
from spaces.workloads.workload import Workload
from tests.measure.cluster.simulated import SimulatedBuilder, SimulatedRunner
from tests.scheduler.made_up_machine import Clock, MadeUpMachine

SPACES = [hills(size) for size in (256, 320, 384, 448, 512, 576)]
HEAVY = (0, 3)  # what most of the time goes to


class Six(MadeUpMachine):
    """Times six products, each by its size; ``fails`` names those of which no kernel is right."""

    together = 16

    def __init__(
        self, fails: tuple[int, ...] = (), pause: float = 0.0, clock: Clock | None = None
    ) -> None:
        super().__init__(pause, clock=clock)
        self._fails = {SPACES[place].workload for place in fails}

    def _measure(self, candidate: Candidate) -> Measurement:
        if candidate.job.workload in self._fails:
            kind = ErrorKind.WRONG
            return Measurement(candidate.schedule, Status.ERROR, error_kind=kind, started_at=1.0)
        measured = super()._measure(candidate)
        if measured.score is None:
            return measured
        return replace(measured, score=measured.score * candidate.job.workload.flops / 2**28)


def blind(space: Space) -> Search:
    """The search that costs least, where any will do."""
    return RandomSearch(space, 0)


def suite(weights: tuple[float, ...] = (20.0, 1.0, 1.0, 20.0, 1.0, 1.0)) -> Suite:
    members = zip(SPACES, weights, strict=True)
    return Suite("made up", tuple(Member(space.workload, weight) for space, weight in members))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time by which the tuner goes."""
    made = Clock()
    monkeypatch.setattr("scheduler.tuning.progress.time", made)
    return made


def tuned(
    database: Database,
    machine: MadeUpMachine,
    trials: int = 96,
    seconds: float = 600.0,
    patience: int | None = None,
    allocation: Allocation = by_gradient,
    on_progress: Callable[[SuiteProgress], None] | None = None,
    make_search: Callable[[Space], Search] | None = blind,
    **options,
) -> SuiteResult:
    made = SuiteTuner(
        suite(),
        MACHINE,
        database,
        machine,
        allocation=allocation,
        spaces=SPACES,
        make_search=make_search,
        **options,
    )
    return made.run(trials, seconds, patience, on_progress)


def shares(machine: MadeUpMachine) -> Counter[str]:
    """Candidates of the search, by workload."""
    counts: Counter[str] = Counter()
    for job, (schedules, final) in zip(machine.jobs, machine.submitted, strict=True):
        if not final:
            counts[job.workload.key] += len(schedules)
    return counts


def test_all_trials_are_made_and_kept(database: Database) -> None:
    machine = Six()
    result = tuned(database, machine)
    assert result.stopped is Stop.TRIALS
    assert result.trials == sum(task.trials for task in result.tasks) == 96
    assert shares(machine).total() == 96
    for task, space in zip(result.tasks, SPACES, strict=True):
        kept = [r.measurement for r in database.records(space.workload, MACHINE)]
        assert sum(m.round == "search" for m in kept) == task.trials > 0
        assert task.best is not None
        assert task.best.round == "final"
        finals = [m.score for m in kept if m.round == "final" and m.score is not None]
        assert task.latency == min(finals)
        assert task.gain is not None
        assert task.gain >= 0.9
    weights = [member.weight for member in suite().members]
    assert result.value == pytest.approx(
        sum(w * (task.latency or 0.0) for w, task in zip(weights, result.tasks, strict=True))
    )


def test_each_gets_a_batch_before_any_gets_a_second(database: Database) -> None:
    machine = Six()
    tuned(database, machine)
    workloads = [job.workload for job in machine.jobs]
    assert workloads[: len(SPACES)] == [space.workload for space in SPACES]


def test_what_weighs_most_gets_the_most_trials(database: Database) -> None:
    machine = Six()
    tuned(database, machine)
    counts = shares(machine)
    heavy = {SPACES[place].workload.key for place in HEAVY}
    most = {key for key, _ in counts.most_common(len(HEAVY))}
    assert most == heavy


def finalists(machine: MadeUpMachine) -> list[int]:
    """How many there were of each product."""
    counts = Counter[Workload]()
    for job, (schedules, final) in zip(machine.jobs, machine.submitted, strict=True):
        counts[job.workload] += len(schedules) if final else 0
    return [counts[space.workload] for space in SPACES]


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


def test_two_suites_on_one_executor_each_get_their_own_results(database: Database) -> None:
    halves = [(SPACES[:3], "first"), (SPACES[3:], "second")]
    found: dict[str, SuiteResult] = {}
    with closing(LocalExecutor(MACHINE, 1, SimulatedBuilder(), SimulatedRunner(0.0))) as executor:

        def tune(spaces: list[Space], session: str) -> None:
            half = Suite(session, tuple(Member(space.workload) for space in spaces))
            tuner = SuiteTuner(
                *(half, MACHINE, database, executor),
                session=session,
                spaces=spaces,
                make_search=blind,
            )
            found[session] = tuner.run(trials=96, seconds=60)

        threads = [threading.Thread(target=tune, args=half) for half in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for spaces, session in halves:
        result = found[session]
        assert (result.stopped, result.trials) == (Stop.TRIALS, 96)
        runs = {run.key: run.workload for run in database.runs(session)}
        assert set(runs.values()) == {space.workload for space in spaces}
        kept = [r for space in spaces for r in database.records(space.workload, MACHINE)]
        assert {r.run: r.workload for r in kept} == runs
        assert sum(r.measurement.round == "search" for r in kept) == 96


def test_the_gradient_needs_fewer_trials_than_equal_shares(tmp_path: Path) -> None:
    histories = []
    for allocation, trials in ((by_gradient, 96), (in_turn, 192)):
        with Database(tmp_path / f"{trials}.db") as database:
            histories.append(tuned(database, Learning(), trials, allocation=allocation).history)
    reached = histories[0][-1][2]
    assert next((n for n, _, value in histories[1] if value <= reached), 192) > 1.5 * 96


def test_a_run_is_the_same_every_time(tmp_path: Path) -> None:
    found = []
    for name in "ab":
        machine = Six()
        with Database(tmp_path / f"{name}.db") as database:
            result = tuned(database, machine, trials=64)
        found.append((machine.searched, [(trials, value) for trials, _, value in result.history]))
    assert found[0] == found[1]


def test_a_second_run_goes_on_and_repeats_nothing(database: Database) -> None:
    first, second = Six(), Six()
    before = tuned(database, first)
    after = tuned(database, second)
    assert after.resumed == 96
    assert after.trials == 96
    assert after.value is not None
    assert before.value is not None
    assert after.value <= before.value
    assert after.history[0][0] == 0
    for task, space in zip(before.tasks, SPACES, strict=True):
        both = [
            {s for job, (schedules, final) in zip(m.jobs, m.submitted, strict=True)
             if job.workload == space.workload and not final for s in schedules}
            for m in (first, second)
        ]  # fmt: skip
        assert task.best is not None
        assert both[0] & both[1] <= {task.best.schedule}


def test_the_runs_of_a_suite_have_one_session(database: Database) -> None:
    tuned(database, Six(), trials=24)
    runs = list(database.runs())
    assert {run.workload for run in runs} == {space.workload for space in SPACES}
    assert len({run.session for run in runs}) == 1
    assert runs[0].session
    assert {run.reason for run in runs} == {"trials"}


def test_a_workload_that_gains_nothing_stops_alone(database: Database) -> None:
    result = tuned(database, Six(), trials=2000, patience=24)
    assert result.stopped is Stop.PATIENCE
    assert {task.stopped for task in result.tasks} == {Stop.PATIENCE}
    assert result.trials < 2000
    assert len({task.trials for task in result.tasks}) > 1


def test_a_workload_without_a_right_kernel_does_not_starve_the_others(database: Database) -> None:
    machine = Six(fails=(1,))
    result = tuned(database, machine, trials=128)
    assert result.value is None
    assert result.tasks[1].best is None
    assert result.tasks[1].trials <= 128 / 6 + 16
    assert all(task.best is not None for i, task in enumerate(result.tasks) if i != 1)


def test_exhausted_spaces_end_the_run(database: Database) -> None:
    small = knolls()
    members = (Member(small.workload), Member(SPACES[0].workload))
    tuner = SuiteTuner(
        Suite("two", members),
        MACHINE,
        database,
        Six(),
        spaces=[small, SPACES[0]],
        allocation=in_turn,
        make_search=blind,
    )
    result = tuner.run(trials=2 * len(set(small.enumerate())) + 64, seconds=600)
    assert result.tasks[0].stopped is Stop.EXHAUSTED
    assert result.tasks[1].stopped is Stop.TRIALS


def test_time_is_kept_with_all_comparisons_done(database: Database, clock: Clock) -> None:
    result = tuned(database, Six(pause=0.04, clock=clock), trials=100_000, seconds=16)
    assert clock.now < 18
    assert result.stopped is Stop.SECONDS
    for task in result.tasks:
        assert task.best is not None
        assert task.best.round == "final"


def test_where_time_is_short_each_gets_a_kernel_before_any_are_compared(
    database: Database, clock: Clock
) -> None:
    """What each candidate takes is three times what is expected; all are right."""

    class Slow(Six):
        together = 1

        def _measure(self, candidate: Candidate) -> Measurement:
            round = candidate.job.round
            return Measurement(
                candidate.schedule, Status.OK, 1.0, (1.0,), round=round, started_at=1.0
            )

    result = tuned(database, Slow(pause=0.19, clock=clock), trials=100_000, seconds=6)
    assert result.stopped is Stop.SECONDS
    assert result.value is not None
    assert result.seconds <= 6 + 2


def test_devices_that_compare_side_by_side_leave_more_time_to_search(
    tmp_path: Path, clock: Clock
) -> None:
    def trials(devices: int) -> int:
        machine = Six(pause=0.04, clock=clock)
        machine.devices = devices
        clock.now = 0.0
        with Database(tmp_path / f"{devices}.db") as own:
            return tuned(own, machine, trials=100_000, seconds=16).trials

    assert trials(3) > trials(1)


def test_a_machine_that_hangs_does_not_keep_the_tuner(database: Database, clock: Clock) -> None:
    class Hanging(Six):
        def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
            clock.sleep(timeout or 0.0)
            return []

    result = tuned(database, Hanging(), seconds=1)
    assert clock.now < 3
    assert result.stopped is Stop.SECONDS
    assert result.value is None


def test_a_keyboard_interrupt_gives_the_best_so_far_of_all(database: Database) -> None:
    def interrupt(progress: SuiteProgress) -> None:
        if progress.value is not None:
            raise KeyboardInterrupt

    machine = Six()
    result = tuned(database, machine, on_progress=interrupt)
    assert result.stopped is Stop.INTERRUPTED
    assert result.value is not None
    assert machine.pending() == 0
    assert {run.reason for run in database.runs()} == {"interrupted"}


def test_progress_counts_all_workloads(database: Database) -> None:
    events: list[SuiteProgress] = []
    result = tuned(database, Six(), on_progress=events.append)
    searched = [e for e in events if e.phase == "search" and e.latest is not None]
    assert [e.trials for e in searched] == list(range(1, 97))
    assert {e.place for e in searched} == set(range(len(SPACES)))
    values = [e.value for e in searched if e.value is not None]
    assert values == sorted(values, reverse=True)
    assert [value for _, _, value in result.history] == sorted(set(values), reverse=True)


def test_the_mean_of_speedups_shares_trials_by_what_is_won(tmp_path: Path) -> None:
    yardsticks = [Yardstick(space.workload, numpy_seconds=2e-3) for space in SPACES]
    with Database(tmp_path / "a.db") as database:
        result = tuned(
            database, Six(), objective=Objective.SPEEDUP, yardsticks=yardsticks, trials=96
        )
    assert result.value is not None
    latencies = [task.latency for task in result.tasks]
    weights = [member.weight for member in suite().members]
    logs = [w * np.log(2e-3 / (g or 1.0)) for w, g in zip(weights, latencies, strict=True)]
    assert result.value == pytest.approx(np.exp(sum(logs) / sum(weights)))
    values = [value for _, _, value in result.history]
    assert values == sorted(values)


def examples(space: Space, count: int) -> list[Example]:
    rows = space.sample(np.random.default_rng(3), count)
    schedules = [space.schedule(row) for row in rows]
    return [Example(space.workload, MACHINE, s, hills_latency(s.values)) for s in schedules]


def test_what_one_task_measures_the_others_search_by() -> None:
    one, other = SPACES[:2]
    shared = SharedModel([one, other])
    rows = other.sample(np.random.default_rng(4), 128)
    truth = np.array([hills_latency(other.schedule(row).values) for row in rows])
    assert not shared.trained
    ignorant, _ = shared.predict(other, rows)
    shared.learn(examples(one, 128))
    assert shared.trained
    taught, _ = shared.predict(other, rows)

    def chosen(score: np.ndarray) -> float:
        return float(np.median(truth[np.argsort(-score)[:16]]))

    assert chosen(taught) < 0.8 * chosen(ignorant)


def test_what_is_fastest_for_one_task_the_others_try_in_their_next_batch(
    database: Database,
) -> None:
    one, other, third = SPACES[:3]
    shared = SharedModel([one, other, third])
    search = SharingSearch(RandomSearch(other, 0), other, shared)
    assert all(proposal.origin == "random" for proposal in search.ask(16))
    slow, fast, failed, *_ = (example.schedule for example in examples(one, 8))
    SharingSearch(blind(one), one, shared).tell([(slow, 2.0), (fast, 1.0), (failed, None)])
    known = examples(third, 4)[-1].schedule
    SharingSearch(blind(third), third, shared).tell([(known, 1.0)])
    search.tell([(known, 1.0)])
    tried, *others = search.ask(4)
    assert tried == Proposed(fast, "starter")
    assert len(others) == 3
    assert {proposal.origin for proposal in others} == {"random"}
    assert search.ask(16)[0] == Proposed(slow, "starter")  # a quarter of a batch at most
    assert all(proposal.origin == "random" for proposal in search.ask(16))


def test_what_others_found_is_asked_for_once(database: Database) -> None:
    """Also where the search itself would ask for it, and never was told."""
    small = knolls()
    every = list(small.enumerate())
    shared = SharedModel([small, SPACES[0]])
    search = SharingSearch(RandomSearch(small, 0), small, shared)
    shared.learn([Example(SPACES[0].workload, MACHINE, s, 1.0) for s in every[:3]])
    asked: list[Schedule] = []
    while batch := search.ask(8):
        asked += [proposal.schedule for proposal in batch]
    assert sorted(asked, key=lambda s: s.key) == sorted(every, key=lambda s: s.key)


def test_of_each_task_only_the_fastest_are_tried_elsewhere() -> None:
    one, other = SPACES[:2]
    shared = SharedModel([one, other])
    known = sorted(examples(one, 64), key=lambda e: (e.latency or 0.0, e.schedule.key))
    shared.learn(known[::-1])
    found = shared.leaders(other)
    assert len(found) == LEADERS
    latency = {example.schedule: example.latency for example in known}
    assert [latency[s] for s in found] == [e.latency for e in known[:LEADERS]]
    assert shared.leaders(one) == []
    lucky = found[0]
    shared.learn([Example(one.workload, MACHINE, lucky, 99.0)])  # as measured again
    assert shared.leaders(other)[-1] == lucky


def test_a_search_that_begins_with_what_others_learned_has_a_second_opinion(
    database: Database,
) -> None:
    """Whatever is proposed after 24 outcomes, it is proposed by both."""
    one, other = SPACES[:2]
    proposed = []
    for make in (
        lambda shared: sharing_search(other, database, shared, seed=5),
        lambda shared: SharingSearch(default_search(other, 5, Transfer(shared, [])), other, shared),
    ):
        shared = SharedModel([one, other])
        shared.learn(examples(one, 128))
        search = make(shared)
        asked: list[Schedule] = []
        for _ in range(5):
            batch = [proposal.schedule for proposal in search.ask(8)]
            search.tell([(schedule, hills_latency(schedule.values)) for schedule in batch])
            asked += batch
        proposed.append(asked)
    assert proposed[0] == proposed[1]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"suite": 3}, "3 is no suite"),
        ({"suite": "none.toml"}, "suite 'none.toml': No such file"),
        ({"objective": "speed"}, "objective='speed' is unknown; allowed: latency, speedup"),
        ({"target": "tpu"}, "unknown target 'tpu'"),
        ({"trials": 0}, "trials=0 is out of range"),
        ({"seconds": -1}, "seconds=-1 is out of range"),
        ({"patience": 0}, "patience=0 is out of range"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"search": "luck"}, "unknown search 'luck'; allowed: evolutionary, "),
        ({"search": "random", "model": "model.json"}, "search=random follows no model"),
        (
            {"suite": "llama-3-8b-decode", "objective": "speedup"},
            "objective=speedup needs a library",
        ),
    ],
)
def test_bad_input_is_refused_before_a_database_is_made(tmp_path, monkeypatch, given, says) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        tune_suite(**{"suite": "bert-base", **given})
    assert says in str(error.value)
    assert not list(tmp_path.iterdir())
