"""``Study``: ask, tell, enqueue, trials, best, and callbacks that may stop it."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from contextlib import closing
from html import escape

import numpy as np
import pytest

from tests.measure.cluster.simulated import SimulatedBuilder, SimulatedRunner
from tests.scheduler.made_up_machine import MadeUpMachine
from tilewright import InputError
from tilewright.measure.database import Database
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.records.measurement import Candidate, Job, Measurement
from tilewright.scheduler.strategies.genetic import GeneticSearch
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.search import Proposed, Search
from tilewright.scheduler.testing.landscape import hills, hills_latency, knolls
from tilewright.scheduler.testing.search import SearchContract
from tilewright.scheduler.tuning.states import Stop
from tilewright.scheduler.tuning.study import Study, Trial
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.template import Rule


def made(database: Database, space: Space | None = None, **options) -> Study:
    space = space or hills()
    options = {"search": RandomSearch} | options
    return Study(space.workload, space.target, database, space=space, **options)


def simulated() -> LocalExecutor:
    return LocalExecutor(hills().target, 1, SimulatedBuilder(), SimulatedRunner(0.0))


def measure(trial: Trial) -> float | None:
    failed = trial.schedule["pack"] == "none" and trial.schedule["kc"] == 256
    return None if failed else hills_latency(trial.decisions)


def test_what_is_told_is_kept_and_ranked(database: Database) -> None:
    with made(database) as study:
        told = [study.tell(trial, measure(trial)) for _ in range(24) if (trial := study.ask())]
        assert [trial.number for trial in study.trials] == list(range(24))
        assert [trial.latency for trial in study.trials] == [trial.latency for trial in told]
        assert {trial.origin for trial in study.trials} == {"random"}
        least = min(trial.latency for trial in told if trial.latency is not None)
        assert study.best is not None
        assert (study.best.latency, study.best.error) == (least, "")
        assert study.kernel(study.best).source.language == "none"
    (run,) = database.runs()
    assert (run.reason, run.configuration) == ("closed", {"numerics": "strict"})


def test_a_notebook_shows_the_trials_of_a_study(database: Database) -> None:
    study = made(database)
    assert study._repr_html_() == f"<pre>{escape(repr(study))}</pre>"
    assert list(database.runs()) == []  # looking at it begins no run
    with study:
        for _ in range(6):
            trial = study.ask()
            assert trial is not None
            study.tell(trial, measure(trial))
        _, _, picture = study._repr_html_().partition("</pre>")
    assert ET.fromstring(picture).get("data-points") == "6"


def test_a_study_goes_on_where_an_earlier_one_ended(database: Database) -> None:
    with made(database) as study:
        study.optimize(measure, trials=8)
        known = {trial.schedule for trial in study.trials}
        best = study.best
    with made(database) as study:
        assert study.best == best
        study.optimize(measure, trials=8)
        assert len({trial.schedule for trial in study.trials} - known) == 8


def test_it_ends_with_the_space(database: Database) -> None:
    space = knolls()
    with made(database, space) as study:
        study.optimize(measure)
        assert {trial.schedule for trial in study.trials} == set(space.enumerate())
        assert study.ask() is None


def test_the_best_is_one_that_the_space_still_has(database: Database) -> None:
    with made(database) as study:
        for _ in range(24):
            trial = study.ask()
            assert trial is not None
            study.tell(trial, measure(trial))
        fastest = study.best
        ranked = sorted(t.latency for t in study.trials if t.latency is not None)
    assert fastest is not None
    narrower = hills()
    (template,) = narrower.templates.values()
    without = Rule("without", ("rows",), lambda c: c["rows"] != fastest.decisions["rows"], str)
    template.rules = (*template.rules, without)
    narrower = Space(narrower.workload, narrower.target, [template])
    with made(database, narrower) as study:
        assert study.best is not None
        assert study.best.schedule in narrower
        assert study.best.latency in ranked[1:]


def test_a_failure_has_its_kind(database: Database) -> None:
    with made(database) as study:
        trial = study.ask()
        assert trial is not None
        assert study.tell(trial, error="wrong_result").error == "wrong_result"
        assert (study.best, study.trials[0].latency) == (None, None)


def test_what_is_enqueued_comes_first_and_once(database: Database) -> None:
    space = hills()
    wanted = space.schedule(space.sample(np.random.default_rng(9), 1)[0])
    with made(database, space) as study:
        assert study.enqueue(dict(wanted.values)) == wanted
        first, second = study.ask(), study.ask()
        assert first is not None
        assert second is not None
        assert (first.schedule, first.origin) == (wanted, "enqueued")
        assert second.schedule != wanted


def test_a_callback_stops_a_study_and_its_results_stay(database: Database) -> None:
    seen: list[Trial] = []

    def stop(study: Study, trial: Trial) -> None:
        seen.append(trial)
        if len(seen) == 5:
            study.stop()

    with made(database, callbacks=[stop]) as study:
        study.optimize(measure, trials=100)
        assert [trial.number for trial in seen] == list(range(5))
        assert [trial.latency for trial in seen] == [t.latency for t in study.trials]
    (run,) = database.runs()
    assert run.reason == "callback"


def test_a_callback_stops_a_run_of_the_tuner_which_compares_its_best(database: Database) -> None:
    space, machine = hills(), MadeUpMachine()

    def stop(study: Study, trial: Trial) -> None:
        if trial.number >= 20:
            study.stop()

    tuner = Tuner(
        space.workload,
        space.target,
        database,
        machine,
        RandomSearch,
        spaces=[space],
        callbacks=[stop],
    )
    result = tuner.run(trials=1000, seconds=600)
    assert result.stopped is Stop.CALLBACK
    assert 20 <= result.trials < 64
    assert result.best is not None
    assert machine.compared
    assert [run.reason for run in database.runs()] == ["callback"]


@pytest.mark.parametrize("latency", [0, -1e-3, math.nan, math.inf, "fast", True])
def test_what_is_no_latency_is_refused(database: Database, latency) -> None:
    with made(database) as study:
        trial = study.ask()
        assert trial is not None
        with pytest.raises(InputError, match="is no time; allowed: seconds above 0, or None"):
            study.tell(trial, latency)
        assert study.trials == []


def test_what_is_no_schedule_of_the_space_is_refused(database: Database) -> None:
    with made(database) as study:
        with pytest.raises(InputError, match="template 'knoll' is not in this space"):
            study.tell(Schedule("knoll", ()), 1.0)
        with pytest.raises(InputError, match="decision 'colour' is not one of hills"):
            study.enqueue({"colour": 1})
        with pytest.raises(InputError, match="5 is no schedule; allowed: a Schedule, or decisions"):
            study.enqueue(5)
        with pytest.raises(InputError, match="5 is no schedule; allowed: a Trial or a Schedule"):
            study.tell(5, 1.0)
        trial = study.ask()
        assert trial is not None
        with pytest.raises(InputError, match="error='odd' is unknown; allowed: compile_error"):
            study.tell(trial, error="odd")
    unknown = pytest.raises(InputError, match="unknown search 'luck'")
    with unknown, made(database, search="luck") as study:
        study.ask()


def test_an_executor_measures_for_a_study(database: Database) -> None:
    with made(database) as study, closing(simulated()) as executor:
        job = Job(study.run.key, study.workload, study.target)

        def measured(trial: Trial) -> Measurement:
            executor.submit(job, [Candidate(job, trial.schedule, study.kernel(trial))])
            (result,) = executor.results(None, job)
            return result.measurement

        study.optimize(measured, trials=8)
        kept = [trial.measurement for trial in study.trials]
        assert len(kept) == 8
        assert all(m is not None and m.samples and m.round == "search" for m in kept)
        assert executor.pending(job) == 0


class ThroughStudy:
    """A search that a study asks and tells."""

    def __init__(self, database: Database, space: Space, search: Search) -> None:
        self._study = made(database, space, search=lambda _: search)

    def ask(self, count: int) -> list[Proposed]:
        asked = self._study.ask_many(count)
        return [Proposed(t.schedule, t.origin, t.mean, t.spread) for t in asked]

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        for schedule, latency in results:
            if schedule in self._study.space:
                self._study.tell(schedule, latency)


class TestASearchThroughAStudy(SearchContract):
    """A search keeps its contract when a study stands between."""

    @pytest.fixture(autouse=True)
    def _databases(self, tmp_path) -> None:
        self._folder, self._made = tmp_path, 0

    def make(self, space: Space, seed: int) -> ThroughStudy:
        self._made += 1
        database = Database(self._folder / f"{self._made}.db")
        return ThroughStudy(database, space, GeneticSearch(space, seed))
