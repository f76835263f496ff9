"""Records of earlier versions of templates: said, and used as a start."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import databases
from tests.scheduler.made_up_machine import MadeUpMachine
from tests.scheduler.tuning.made_up_runs import rows, tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.earlier_versions import STARTS
from tilewright.scheduler.query import query
from tilewright.scheduler.testing.landscape import hills, hills_latency
from tilewright.scheduler.tuning.task import EARLIER
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target


def keep(
    database: Database,
    space: Space,
    count: int,
    version: int,
    changed: Callable[[Schedule], Schedule] = lambda schedule: schedule,
) -> list[Record]:
    """Records of so many schedules, the fastest last, as another version of their template had
    them, whose decisions may have ``changed``."""
    found = []
    for number, schedule in zip(range(count), space.enumerate(), strict=False):
        seconds = 1e-3 * (count - number)
        timed = Measurement(changed(schedule), Status.OK, seconds, (seconds,), started_at=1.0)
        earlier = f"{schedule.template}.{version}"
        found.append(Record(space.workload, space.target, earlier, timed))
    database.record_all(found)
    return found


def test_the_best_of_an_earlier_version_is_measured_first(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()
    records = keep(database, space, 32, version=77)
    with pytest.warns(RuntimeWarning, match="32 records are of an earlier version of their temp"):
        result = tuner(space, database, machine).run(trials=16, seconds=600)
    assert result.resumed == 0
    fastest = [record.schedule for record in reversed(records)][:STARTS]
    assert set(fastest) <= set(machine.searched[: STARTS + 2])
    origins = {r.schedule: r.proposal.origin for r in database.records() if r.proposal}
    assert {origins[schedule] for schedule in fastest} <= {EARLIER, "untuned"}
    assert EARLIER in origins.values()
    assert result.best is not None
    assert result.best.score is not None
    assert result.best.score <= min(hills_latency(schedule.values) for schedule in fastest)
    assert len(set(rows(space, database)[32:])) == 16


def other_decisions(schedule: Schedule) -> Schedule:
    """The schedule with another last decision, which today's template does not have."""
    return Schedule(schedule.template, (*schedule.decisions[:-1], ("multiply", "fma")))


def test_what_is_nearest_is_measured_first_where_decisions_came_and_went(
    database: Database,
) -> None:
    space, machine = hills(), MadeUpMachine()
    keep(database, space, 32, 77, other_decisions)
    with pytest.warns(RuntimeWarning, match="records are of an earlier version"):
        tuner(space, database, machine).run(trials=16, seconds=600)
    assert EARLIER in {r.proposal.origin for r in database.records() if r.proposal}


def test_a_record_without_a_decision_of_today_is_not_the_best(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()
    (template,) = space.templates.values()
    keep(database, space, 4, template.version, other_decisions)
    result = tuner(space, database, machine).run(trials=16, seconds=600)
    assert result.best is not None
    assert result.best.schedule in space
    assert EARLIER in {r.proposal.origin for r in database.records() if r.proposal}


def test_today_s_records_are_no_earlier_ones(database: Database, recwarn) -> None:
    space, machine = hills(), MadeUpMachine()
    tuner(space, database, machine).run(trials=16, seconds=600)
    tuner(space, database, machine).run(trials=16, seconds=600)
    assert not [w for w in recwarn if "earlier version" in str(w.message)]


def test_query_and_list_say_how_many_there_are(tmp_path, capsys) -> None:
    w, target = workload("matmul m=64 n=64 k=64"), detect_target("cpu")
    path = databases.empty(tmp_path)
    with Database(path) as database:
        space = Space(w, target, [space_for(w, target).templates["contraction"]])
        keep(database, space, 7, version=1)
        with pytest.warns(RuntimeWarning, match="7 records are of an earlier version"):
            answer = query(w, target, database)
    assert answer.provenance is not Provenance.MEASURED
    for command in (("list",), ("query", "matmul", "m=64", "n=64", "k=64")):
        assert run((*command, "--db", str(path))) == 0
        assert "7 records are of an earlier version of their templates" in capsys.readouterr().err
