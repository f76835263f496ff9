"""Contract of a database's records: each attempt written is read back once."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind, Place
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Proposal, note
from tilewright.measure.tables.progress import RunProgress
from tilewright.measure.testing.made_up import (
    FEW,
    TARGET,
    VERSION,
    WORKLOAD,
    DatabaseTests,
    a_run,
    attempt,
    attempts,
    failed,
    lost,
    measured,
    shape_of,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload


class RecordsContract(DatabaseTests):
    def test_attempts_known_together_are_kept_together(self, database: Database) -> None:
        several = [attempt(m) for m in (measured(1, 3e-3), failed(2), measured(3, 2e-3))]
        more = attempt(measured(4, 1e-3))
        assert database.record_all(several) == 3
        assert database.record_all([*several, more, more]) == 1
        kept = [record.measurement for record in database.records(WORKLOAD, TARGET)]
        assert kept == [record.measurement for record in (*several, more)]
        assert database.record_all([]) == 0

    def test_one_batch_may_be_of_several_workloads_and_targets(self, database):
        batch = [
            attempt(measured(i, 1.0 + i), shape_of(m), replace(TARGET, threads=threads))
            for i, (m, threads) in enumerate([(2, 1), (1, 1), (2, 2), (1, 2), (2, 1)])
        ]
        assert database.record_all(batch) == 5
        assert [record.schedule for record in database.records()] == [r.schedule for r in batch]
        assert database.trials(shape_of(2), TARGET) == 2
        assert database.trials(shape_of(1), replace(TARGET, threads=2)) == 1

    def test_empty(self, database):
        assert database.best(WORKLOAD, TARGET) is None
        assert database.best_few(WORKLOAD, TARGET, 3) == []
        assert list(database.records()) == []
        assert list(database.nearest(WORKLOAD, TARGET)) == []
        assert database.summaries() == []
        assert database.trials(WORKLOAD, TARGET) == 0

    def test_a_record_says_all_of_its_measurement(self, database):
        before = time.time()
        said = Record(
            WORKLOAD,
            TARGET,
            VERSION,
            replace(measured(1, 0.1 + 0.2, at=1.7e9), place=Place("node7", "GPU 3", "gcc 12.2")),
            run="9af0",
            proposal=Proposal("evolved", 17, mean=0.75, spread=0.1),
            doubted=True,
        )
        database.record(said)
        (record,) = database.records()
        assert record == replace(said, recorded_at=record.recorded_at)
        assert before <= record.recorded_at <= time.time()

    @FEW
    @given(measurement=attempts)
    def test_any_measurement_survives(self, database, measurement):
        known = {record.id for record in database.records()}
        assume(database.record(attempt(measurement)))
        (new,) = (record for record in database.records() if record.id not in known)
        assert new.measurement == measurement

    def test_failures_are_rows_too(self, database):
        self.put(database, *(failed(i, kind) for i, kind in enumerate(ErrorKind)))
        kinds = [record.measurement.error_kind for record in database.records()]
        assert kinds == list(ErrorKind)
        assert database.best(WORKLOAD, TARGET) is None
        assert database.trials(WORKLOAD, TARGET) == len(ErrorKind)

    def test_what_the_machine_lost_is_kept_and_not_counted(self, database):
        self.put(database, lost(1), lost(2), replace(lost(1), started_at=1.0))
        self.put(database, measured(2, 1.0, at=1.0), lost(2), replace(failed(1), started_at=2.0))
        self.put(database, lost(3), workload=shape_of(1))
        assert database.trials(WORKLOAD, TARGET) == 2
        assert len(list(database.records(WORKLOAD))) == 5
        other, summary = database.summaries()
        assert (summary.trials, summary.failures, summary.lost) == (2, 1, 3)
        assert other.workload == str(shape_of(1))
        assert (other.trials, other.lost, other.score) == (0, 1, None)

    def test_records_of_one_workload_or_target(self, database):
        other = workload("matmul", m=1, n=2, k=3)
        slower = replace(TARGET, threads=2)
        self.put(database, measured(1, 1.0))
        self.put(database, measured(2, 1.0), workload=other)
        self.put(database, measured(3, 1.0), target=slower)

        def seen(**choice):
            return [record.schedule["mc"] for record in database.records(**choice)]

        assert seen() == [1, 2, 3]
        assert seen(workload=WORKLOAD) == [1, 3]
        assert seen(target=TARGET) == [1, 2]
        assert seen(workload=WORKLOAD, target=slower) == [3]

    def test_a_workload_in_another_spelling_is_the_same_one(self, database):
        fused = {"m": 64, "n": 96, "k": 128}
        one = workload("matmul", **fused, epilogue="relu(x + bias[n]) * scale[]")
        other = workload("matmul", **fused, epilogue="s[] * max(0, b[n] + x)")
        self.put(database, measured(1, 1.0), workload=one)
        self.put(database, measured(2, 0.5), workload=other)
        self.put(database, measured(1, 1.0), workload=other)  # the very same attempt
        assert database.trials(one, TARGET) == database.trials(other, TARGET) == 2
        assert [record.workload for record in database.records(other)] == [one, one]
        assert database.pairs() == [(one, TARGET)]
        best = database.best(other, TARGET)
        assert (best.workload, best.measurement.score) == (other, 0.5)

    def test_more_records_than_a_page(self, database, monkeypatch):
        monkeypatch.setattr("tilewright.measure.tables.reading.PAGE_ROWS", 3)
        self.put(database, *(measured(i, 1.0) for i in range(7)))
        assert [record.schedule["mc"] for record in database.records()] == list(range(7))

    def test_text_no_database_can_hold_is_spelled_out(self, database):
        self.put(database, replace(failed(1), error_text="\0 \udcff bad"))
        (record,) = database.records()
        assert record.measurement.error_text == "\\x00 \\udcff bad"

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"score": float("nan")}, "score=nan"),
            ({"score": -1.0}, "score=-1.0"),
            ({"score": None}, "needs a score"),
            ({"samples": (float("inf"),)}, r"samples=\[inf\]"),
            ({"info": {"clock": float("nan")}}, "NaN"),
            ({"round": "third"}, "search, preliminary, final"),
            ({"info": {"path": Path("x")}}, "must be JSON"),
        ],
    )
    def test_what_could_not_be_read_back_is_not_written(self, database, change, says):
        with pytest.raises(InputError, match=says):
            self.put(database, replace(measured(1, 1.0), **change))
        assert list(database.records()) == []

    def test_errors_that_go_on_and_on_are_cut_off(self, database, tmp_path):
        self.put(database, replace(failed(1), error_text="\x1b" * 30_000))
        (record,) = database.records()
        assert 20_000 < len(record.measurement.error_text) < 20_010
        database.export_jsonl(tmp_path / "long.jsonl")
        with Database(tmp_path / "other.db") as other:
            other.import_jsonl(tmp_path / "long.jsonl")
            assert list(other.records()) == [record]

    def test_negative_zero_is_zero(self, database, tmp_path):
        self.put(database, replace(failed(1), started_at=-0.0, build_seconds=-0.0))
        assert self.put(database, replace(failed(1), started_at=0.0)) == [False]
        database.export_jsonl(tmp_path / "zero.jsonl")
        assert "-0.0" not in (tmp_path / "zero.jsonl").read_text()

    def test_a_run_says_when_it_lived_and_why_it_ended(self, database):
        run = a_run(started_at=100.0, heartbeat=100.0)
        database.begin_run(run)
        assert list(database.runs()) == [run]
        assert database.summaries() == []
        before = time.time()
        database.beat(run.key)
        (beating,) = database.runs()
        assert beating == replace(run, heartbeat=beating.heartbeat)
        assert before <= beating.heartbeat <= time.time()
        database.end_run(run.key, "trials")
        (ended,) = database.runs()
        assert ended.reason == "trials"
        assert beating.heartbeat <= ended.ended_at == ended.heartbeat <= time.time()

    def test_recording_is_a_heartbeat(self, database):
        run, other = a_run(heartbeat=1.0), a_run(key="other", heartbeat=1.0)
        database.begin_run(run)
        database.begin_run(other)
        database.record(replace(attempt(measured(1, 1.0)), run=run.key))
        beats = {run.key: run.heartbeat for run in database.runs()}
        assert beats["other"] == 1.0
        assert beats[run.key] == next(database.records()).recorded_at

    def test_a_run_is_followed_by_what_came_since(self, database):
        made = [measured(1, 2.0), failed(2), measured(3, 1.0), lost(4)]
        before = database.news()
        for each in made:
            database.record(replace(attempt(each), run=a_run().key))
            assert database.news() != before
            before = database.news()
        database.record(attempt(measured(5, 0.5)))
        known = database.progress(a_run().key)
        assert (known.attempts, known.best) == (4, 1.0)
        assert sum(known.failures.values()) == 2
        assert database.progress(a_run().key, known.last) == RunProgress()
        database.record(replace(attempt(measured(6, 0.7)), run=a_run().key))
        known += database.progress(a_run().key, known.last)
        assert known == database.progress(a_run().key)
        assert (known.attempts, known.best) == (5, 0.7)

    def test_recent_runs_are_the_last_ones_and_those_that_live(self, database):
        before = database.news()
        for n in range(6):
            database.begin_run(a_run(key=f"r{n}", heartbeat=100.0 + n))
        assert database.news() != before
        before = database.news()
        database.end_run("r1", "trials")
        assert database.news() != before
        found = [run.key for run in database.recent_runs(2, 102.5)]
        assert found == ["r3", "r4", "r5"]
        assert [run.key for run in database.recent_runs(1, 1e10)] == ["r5"]
        for n in range(3):
            database.begin_run(note(WORKLOAD, TARGET, session=f"comparison {n}"))
        assert [run.key for run in database.recent_runs(1, 1e10)] == ["r5"]
        assert len(database.recent_runs(9, 1e10)) == 6

    def test_a_run_that_could_not_be_read_back_is_not_written(self, database):
        for change in ({"seed": 2**70}, {"configuration": {"path": Path("x")}}, {"key": "\x1b"}):
            with pytest.raises(InputError):
                database.begin_run(replace(a_run(), **change))
        assert list(database.runs()) == []

    def test_runs_are_exported_and_imported(self, database, tmp_path):
        early, late = tmp_path / "early.jsonl", tmp_path / "late.jsonl"
        run = a_run(heartbeat=1.0)
        database.begin_run(run)
        proposal = Proposal("random", 0)
        database.record(replace(attempt(measured(1, 1.0)), run=run.key, proposal=proposal))
        database.export_jsonl(early)
        database.end_run(run.key, "seconds")
        database.export_jsonl(late)
        with Database(tmp_path / "other.db") as other:
            assert other.import_jsonl(early) == 1
            for path in (late, early, late):
                assert other.import_jsonl(path) == 0
            assert list(other.runs()) == list(database.runs())
            assert list(other.records()) == list(database.records())

    def test_the_same_attempt_twice_is_one_row(self, database):
        attempt = measured(1, 1.0, at=5.0)
        assert self.put(database, attempt, attempt) == [True, False]
        assert len(list(database.records())) == 1

    def test_measuring_again_is_another_row(self, database):
        again = [measured(1, 1.0, at=5.0), measured(1, 1.0, at=6.0), measured(1, 1.0, "final", 5.0)]
        assert self.put(database, *again) == [True, True, True]
        assert database.trials(WORKLOAD, TARGET) == 1
