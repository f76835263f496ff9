"""What a run measures before anything that its search asks for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.scheduler.made_up_machine import MadeUpMachine
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Candidate, Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.measure.testing.made_up import TARGET
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.query import query
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.search import Proposed
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.tuning import tuner
from tilewright.scheduler.tuning.task import UNTUNED
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import Target

TARGETS = [TARGET, cuda_target("sm_90a")]


def square(n: int):
    return workload("matmul", m=n, n=n, k=n)


class Machine(MadeUpMachine):
    """Every kernel is right, and ``fast`` is the fastest."""

    def __init__(self, fast: Schedule | None = None) -> None:
        super().__init__()
        self.fast = fast

    def _measure(self, candidate: Candidate) -> Measurement:
        seconds = 1.0 if candidate.schedule == self.fast else 2.0
        round = candidate.job.round
        return Measurement(
            candidate.schedule, Status.OK, seconds, (seconds,), round=round, started_at=1.0
        )


class Last:
    """A model that likes what the roofline likes least."""

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        score = np.linspace(0.0, 1.0, len(population))
        return score, np.zeros(len(population))


def tune(database: Database, target: Target = TARGET, trials: int = 8, **more) -> Machine:
    machine = more.pop("machine", None) or Machine()
    Tuner(square(64), target, database, machine, batch=8, **more).run(trials, seconds=600)
    return machine


@pytest.mark.parametrize("trials", [1, 8])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_it_begins_with_what_is_predicted(database: Database, target: Target, trials: int) -> None:
    answer = query(square(64), target, database)
    assert answer.provenance is Provenance.PREDICTED
    machine = tune(database, target, trials)
    assert machine.searched[0] == answer.schedule
    assert len(machine.searched) == len(set(machine.searched)) == trials


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_it_begins_with_what_is_transferred(database: Database, target: Target) -> None:
    space, other = space_for(square(64), target), space_for(square(128), target)
    schedule = other.schedule(other.sample(np.random.default_rng(1), 1)[0])
    measured = Measurement(schedule, Status.OK, 1.0, (1.0,), started_at=1.0)
    database.record(Record(square(128), target, other.version_of(schedule), measured))
    answer = query(square(64), target, database)
    assert answer.provenance is Provenance.TRANSFERRED
    assert answer.schedule in space
    assert tune(database, target).searched[0] == answer.schedule


@pytest.mark.parametrize("trials", [1, 2, 8])
def test_what_others_suggest_does_not_hide_what_is_predicted(
    database: Database, trials: int
) -> None:
    predicted = query(square(64), TARGET, None).schedule
    other = space_for(square(128), TARGET)
    schedule = other.schedule(other.sample(np.random.default_rng(1), 1)[0])
    measured = Measurement(schedule, Status.OK, 1.0, (1.0,), started_at=1.0)
    database.record(Record(square(128), TARGET, other.version_of(schedule), measured))
    transferred = query(square(64), TARGET, database).schedule
    assert transferred != predicted
    found = tune(database, trials=trials).searched
    assert found[:2] == [transferred, predicted][:trials]
    assert len(found) == len(set(found)) == trials


def test_it_begins_with_what_a_model_predicts(database: Database) -> None:
    answer = query(square(64), TARGET, database, Last())
    assert answer.schedule != query(square(64), TARGET, database).schedule
    assert tune(database, model=Last()).searched[0] == answer.schedule


def test_no_short_run_ends_slower_than_it_would_have_been_untuned(database: Database) -> None:
    machine = Machine(query(square(64), TARGET, database).schedule)
    search = RandomSearch(space_for(square(64), TARGET), seed=3)
    tune(database, make_search=lambda _: search, machine=machine)
    best = database.best(square(64), TARGET)
    assert best is not None
    assert best.schedule == machine.fast


def test_the_next_run_does_not_measure_it_again(database: Database) -> None:
    first, second = tune(database), tune(database)
    assert first.searched[0] not in second.searched[1:]
    origins = [r.proposal.origin for r in database.records() if r.proposal]
    assert origins.count(UNTUNED) == 1


def test_what_an_earlier_run_found_says_its_decisions_in_their_order(database: Database) -> None:
    tune(database)
    space = space_for(square(64), TARGET)
    again = Tuner(square(64), TARGET, database, Machine(), batch=8).run(1, seconds=600)
    assert again.best is not None
    names = [decision.name for decision in space.templates[again.best.schedule.template].decisions]
    assert [name for name, _ in again.best.schedule.decisions] == names
    assert names != sorted(names)


def test_a_run_that_goes_on_measures_it_if_none_has(database: Database) -> None:
    answer = query(square(64), TARGET, database)
    space = space_for(square(64), TARGET)
    known = space.schedule(space.sample(np.random.default_rng(2), 1)[0])
    measured = Measurement(known, Status.OK, 1.0, (1.0,), started_at=1.0)
    database.record(Record(square(64), TARGET, space.version_of(known), measured))
    assert tune(database).searched[:2] == [known, answer.schedule]  # the known one is checked


def test_a_search_that_asks_for_it_too_has_it_measured_once(database: Database) -> None:
    answer = query(square(64), TARGET, database)

    class Same(RandomSearch):
        def ask(self, count: int) -> list[Proposed]:
            own = [] if len(self._history) else [Proposed(answer.schedule, "enumerated")]
            return own + super().ask(count - len(own))

    search = Same(space_for(square(64), TARGET))
    every = tune(database, make_search=lambda _: search, trials=64).searched
    assert every.count(answer.schedule) == 1
    assert len(every) == 64


def test_each_workload_of_a_suite_begins_so(database: Database) -> None:
    sizes = (64, 96)
    members = tuple(Member(square(n)) for n in sizes)
    answers = {square(n).key: query(square(n), TARGET, database).schedule for n in sizes}
    machine = Machine()
    Tuner(Suite("two", members), TARGET, database, machine).run(32, seconds=600)
    first = {}
    for job, (schedules, _) in zip(machine.jobs, machine.submitted, strict=True):
        first.setdefault(job.workload.key, schedules[0])
    assert first[square(64).key] == answers[square(64).key]
    records = [r for r in database.records(square(96), TARGET) if r.proposal]
    assert records[0].proposal.origin == UNTUNED
    assert first[square(96).key] == records[0].schedule


def test_a_search_is_the_one_that_has_the_name(database: Database) -> None:
    tune(database, trials=24, strategy="random")
    origins = [record.proposal.origin for record in database.records() if record.proposal]
    assert set(origins) == {UNTUNED, "random", "finalist"}


def test_who_tunes_may_bring_an_executor(database: Database) -> None:
    machine = Machine()
    result = tuner.tune(square(64), TARGET, database, 8, executor=machine)
    assert result.trials == len(machine.searched) == 8
