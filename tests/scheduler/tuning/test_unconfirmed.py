"""Records that say too much: measured again, doubted, outlived; and what is kept of a run."""

from __future__ import annotations

import pytest

from tests.scheduler.tuning.test_tuner import MadeUpMachine, tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Candidate, ErrorKind, Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.query import query
from tilewright.scheduler.testing.landscape import hills, hills_latency
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.events import Progress
from tilewright.scheduler.tuning.states import Stop
from tilewright.scheduler.tuning.task import UNTUNED
from tilewright.scheduler.tuning.unconfirmed import FAR, UnconfirmedRecords
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


def record(space: Space, schedule: Schedule, seconds: float, round: str = "final") -> Record:
    measured = Measurement(schedule, Status.OK, seconds, (seconds,), round=round, started_at=1.0)
    version = space.version_of(schedule)
    return Record(space.workload, space.target, version, measured)


def slow_schedule(space: Space) -> Schedule:
    """One that takes several times as long as the best."""
    found = (space.schedule(row) for block in space.blocks() for row in block[:400])
    return next(s for s in found if 5e-3 < hills_latency(s.values) < 2e-2)


def doubted(database: Database) -> list[float]:
    return [r.measurement.score or 0.0 for r in database.records() if r.doubted]


def test_a_false_record_is_doubted_and_outlived(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()
    liar = slow_schedule(space)
    truth, claimed = hills_latency(liar.values), 2e-4
    database.record(record(space, liar, claimed))
    result = tuner(space, database, machine).run(trials=48, seconds=600)
    assert machine.submitted[0] == ([liar], False)
    assert doubted(database) == [claimed]
    assert result.trials == 48
    assert result.best is not None
    assert result.best.schedule != liar
    assert (result.best.score or 0.0) < truth
    best = database.best(space.workload, space.target)
    assert best is not None
    assert best.schedule == result.best.schedule


def test_several_false_records_are_doubted_one_after_the_other(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()
    liars = [space.schedule(row) for row in next(iter(space.blocks()))[:3]]
    claims = [1e-4, 1.1e-4, 1.2e-4]
    for liar, claimed in zip(liars, claims, strict=True):
        database.record(record(space, liar, claimed))
    tuner(space, database, machine).run(trials=64, seconds=600)
    assert sorted(doubted(database)) == claims


def test_nothing_is_cut_short_by_what_this_run_has_not_seen(database: Database) -> None:
    space = hills()

    class Watching(MadeUpMachine):
        def _measure(self, candidate: Candidate) -> Measurement:
            to_beat.append(candidate.job.best)
            return super()._measure(candidate)

    to_beat: list[float | None] = []
    database.record(record(space, slow_schedule(space), 1e-4))
    machine = Watching()
    tuner(space, database, machine).run(trials=48, seconds=600)
    first = 1 + len(machine.submitted[1][0])
    assert to_beat[:first] == [None] * first
    least = min(hills_latency(schedule.values) for schedule in machine.searched)
    assert all(best is not None and best >= least for best in to_beat[first:])


def test_a_true_record_stays_and_is_no_trial(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()
    events: list[Progress] = []
    known = slow_schedule(space)
    database.record(record(space, known, hills_latency(known.values)))
    result = tuner(space, database, machine).run(32, 60, on_progress=events.append)
    assert not doubted(database)
    assert result.trials == 32
    trials = [e.trials for e in events if e.phase == "search" and e.latest is not None]
    assert trials == list(range(1, 33))
    again = [r for r in database.records() if r.schedule == known and r.run]
    (own,) = (r for r in again if r.measurement.round == "search")
    assert own.proposal is not None
    assert own.proposal.origin == "resumed"


def test_a_claim_about_a_kernel_that_fails_is_false(database: Database) -> None:
    class Wrong(MadeUpMachine):
        def _measure(self, candidate: Candidate) -> Measurement:
            if candidate.schedule != liar:
                return super()._measure(candidate)
            kind = ErrorKind.WRONG
            return Measurement(liar, Status.ERROR, error_kind=kind, started_at=2.0)

    space = hills()
    liar = slow_schedule(space)
    database.record(record(space, liar, 1e-4))
    result = tuner(space, database, Wrong()).run(trials=16, seconds=600)
    assert doubted(database) == [1e-4]
    assert result.best is not None
    assert result.best.schedule != liar


def test_a_claim_that_the_machine_lost_is_asked_about_again(database: Database) -> None:
    class Losing(MadeUpMachine):
        lost = False

        def _measure(self, candidate: Candidate) -> Measurement:
            if candidate.schedule != liar or self.lost:
                return super()._measure(candidate)
            self.lost = True
            kind = ErrorKind.DEVICE
            return Measurement(liar, Status.LOST, error_kind=kind, started_at=2.0)

    space, machine = hills(), Losing()
    liar = slow_schedule(space)
    database.record(record(space, liar, 1e-4))
    tuner(space, database, machine).run(trials=48, seconds=600)
    assert machine.lost
    assert doubted(database) == [1e-4]


def test_query_answers_with_what_nobody_doubts(database: Database) -> None:
    from tilewright.spaces.operators import workload
    from tilewright.spaces.registry import space_for
    from tilewright.spaces.target import detect_target

    work, target = workload("matmul m=32 n=32 k=32"), detect_target("cpu")
    space = space_for(work, target)
    rows = list(next(iter(space.blocks()))[:2])
    liar, honest = (space.schedule(row) for row in rows)
    database.record(record(space, liar, 2e-6))
    database.record(record(space, honest, 5e-6))
    (false,) = (r for r in database.records() if r.schedule == liar)
    database.doubt(false)
    assert query(work, target, database).schedule == honest


@pytest.mark.parametrize(
    ("found", "false"), [(1.0, 0), (0.1, 0), (FAR, 0), (1.01 * FAR, 1), (None, 1)]
)
def test_how_far_is_far(found: float | None, false: int) -> None:
    space = hills()
    schedule = slow_schedule(space)
    claims = UnconfirmedRecords([record(space, schedule, 1.0)])
    status = Status.ERROR if found is None else Status.OK
    assert schedule in claims
    assert len(claims.confirm(Measurement(schedule, status, found))) == false
    assert schedule not in claims
    assert claims.confirm(Measurement(schedule, status, found)) == []


# -- runs ----------------------------------------------------------------------------------


def test_a_run_is_kept_from_its_beginning_to_its_end(database: Database) -> None:
    from tilewright.scheduler.tuning.tuner import Tuner

    space, machine = hills(), MadeUpMachine()
    made = Tuner(
        space.workload,
        space.target,
        database,
        machine,
        seed=7,
        spaces=[space],
        command="tilewright tune",
        baselines=[Baseline(space.workload, 50.0, 2e-3)],
    )
    result = made.run(trials=32, seconds=600)
    (run,) = database.runs()
    assert (run.workload, run.target) == (space.workload, space.target)
    assert (run.command, run.seed, run.reason) == ("tilewright tune", 7, "trials")
    assert run.configuration == {
        "trials": 32,
        "seconds": 600,
        "patience": None,
        "search": "evolutionary",
        "numerics": "strict",
    }
    assert (run.peak_gflops, run.library_seconds) == (50.0, 2e-3)
    assert run.versions.keys() >= {"tilewright", "python", "numpy", "templates"}
    assert run.ended_at is not None
    assert run.started_at <= run.ended_at
    records = list(database.records())
    assert {r.run for r in records} == {run.key}
    assert len(records) == result.trials + 8 + 4 + 4 + 2 + 2 + 1
    places = [r.proposal.place for r in records if r.proposal]
    assert places == list(range(53))
    origins = [r.proposal.origin for r in records if r.proposal]
    assert origins[0] == UNTUNED
    assert set(origins[1:32]) <= {"child", "immigrant", "neighbour", "random"}
    assert origins[32:] == ["finalist"] * 21
    for r in records[:32]:
        assert r.proposal is not None
        assert (r.proposal.mean is None) == (r.proposal.origin in {"random", UNTUNED})


def test_how_a_run_ends_is_kept(database: Database) -> None:
    class Broken(MadeUpMachine):
        def results(self, timeout=None, *jobs):  # type: ignore[no-untyped-def]
            raise RuntimeError("a fault of the program")

    class Interrupted(MadeUpMachine):
        def results(self, timeout=None, *jobs):  # type: ignore[no-untyped-def]
            if len(self.submitted) < 2:
                return super().results(timeout, *jobs)
            raise KeyboardInterrupt

    with pytest.raises(RuntimeError, match="a fault"):
        tuner(hills(), database, Broken()).run(32, 60)
    result = tuner(hills(), database, Interrupted()).run(64, 60)
    assert result.stopped is Stop.INTERRUPTED
    assert [run.reason for run in database.runs()] == ["failed", "interrupted"]
