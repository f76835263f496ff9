"""What every backend of the tuning database must do.

Inherit from :class:`DatabaseContract` and give two fixtures, paths or URLs: ``location`` of a
database that has tables and nothing in them, and ``new_location``, where none has been made yet.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from measure.database import Database
from measure.measurement import ErrorKind, Measurement, Place, Status
from measure.ranking import Ranking
from measure.record import Record
from measure.run import Proposal, Run
from measure.timing import score_by_clock
from spaces.cpu.target import CpuTarget
from spaces.errors import InputError
from spaces.operators import workload
from spaces.schedule import Schedule
from spaces.text import spelled_out

TARGET = CpuTarget(
    model="Example CPU",
    architecture="x86_64",
    isa="avx2",
    vector_bytes=32,
    vector_registers=16,
    fma=True,
    bf16_dot=False,
    cores=4,
    threads=1,
    l1_bytes=32768,
    l2_bytes=524288,
    l3_bytes=16777216,
    compiler="gcc",
    compiler_version="12.2.0",
    flags=("-O2", "-march=native"),
)
WORKLOAD = workload("matmul", m=64, n=96, k=128, epilogue="relu(x + bias[n])")
VERSION = "contraction.1"
HUGE = "1" + 400 * "0"


def schedule(number: int) -> Schedule:
    return Schedule("contraction", (("mc", number), ("order", "mnk"), ("packed", True)))


def measured(number: int, score: float, round: str = "search", at: float = 0.0) -> Measurement:
    return Measurement(
        schedule(number),
        Status.OK,
        score,
        samples=(score, score * 1.1),
        reference_samples=(1e-3,),
        clock="cpu",
        round=round,
        started_at=at,
        info={"registers": 30},
    )


def attempt(measurement: Measurement, workload=WORKLOAD, target=TARGET) -> Record:
    return Record(workload, target, VERSION, measurement)


def lost(number: int) -> Measurement:
    return Measurement(schedule(number), Status.LOST, error_kind=ErrorKind.DEVICE)


def a_run(key: str = "9af0", **more) -> Run:
    return Run(
        key,
        WORKLOAD,
        TARGET,
        session="nightly",
        command="tilewright tune matmul m=64 n=96 k=128",
        seed=7,
        configuration={"trials": 128, "seconds": 60.0, "patience": None},
        versions={"tilewright": "0.1.0", "python": "3.11.2"},
        peak_gflops=64.5,
        library_seconds=2e-5,
        **more,
    )


def failed(number: int, kind: ErrorKind = ErrorKind.CRASH) -> Measurement:
    return Measurement(schedule(number), Status.ERROR, error_kind=kind, error_text="signal 11")


FEW = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,  # each implementation inherits the same tests
    ],
)
finite = st.floats(allow_nan=False, allow_infinity=False)
attempts = st.builds(
    Measurement,
    schedule=st.integers(0, 10**6).map(schedule),
    status=st.sampled_from([Status.OK, Status.SLOW]),
    score=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    samples=st.lists(finite).map(tuple),
    reference_samples=st.lists(finite).map(tuple),
    clock=st.sampled_from(["cpu", "wall", "device"]),
    round=st.sampled_from(["search", "final"]),
    error_kind=st.none() | st.sampled_from(ErrorKind),
    error_text=st.text().map(spelled_out),
    build_seconds=finite,
    run_seconds=finite,
    started_at=finite,
    info=st.dictionaries(st.text(), st.integers() | finite | st.text() | st.none()),
    place=st.builds(Place, *[st.text().map(spelled_out)] * 3),
)
possible = st.builds(
    lambda attempt, samples: replace(
        attempt, samples=tuple(samples), score=score_by_clock(attempt.clock, samples)
    ),
    attempts,
    st.lists(st.floats(1e-3, 1e3), min_size=1),
)


histories = st.lists(
    st.tuples(
        st.builds(
            lambda number, score, round, kind: {
                "ok": measured(number, score, round),
                "slow": replace(measured(number, score, round), status=Status.SLOW),
                "failed": replace(failed(number), round=round),
                "lost": replace(lost(number), round=round),
            }[kind],
            st.integers(1, 4),
            st.integers(0, 60).map(lambda i: 1 + 0.0373 * i),
            st.sampled_from(["search", "search", "final"]),
            st.sampled_from(["ok", "ok", "ok", "slow", "failed", "lost"]),
        ),
        st.sampled_from([False, False, False, True]),  # whether a run doubted it
    ),
    min_size=1,
    max_size=12,
)
"""What became known of a few schedules, in its order."""


class DatabaseContract:
    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        raise NotImplementedError

    @pytest.fixture
    def new_location(self, tmp_path: Path) -> str:
        raise NotImplementedError

    @pytest.fixture
    def database(self, location):
        with Database(location) as database:
            yield database

    def put(self, database, *attempts, workload=WORKLOAD, target=TARGET):
        return [database.record(Record(workload, target, VERSION, m)) for m in attempts]

    # -- what is written is read -----------------------------------------------------------

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
            attempt(measured(i, 1.0 + i), _shape(m), replace(TARGET, threads=threads))
            for i, (m, threads) in enumerate([(2, 1), (1, 1), (2, 2), (1, 2), (2, 1)])
        ]
        assert database.record_all(batch) == 5
        assert [record.schedule for record in database.records()] == [r.schedule for r in batch]
        assert database.trials(_shape(2), TARGET) == 2
        assert database.trials(_shape(1), replace(TARGET, threads=2)) == 1

    def test_empty(self, database):
        assert database.best(WORKLOAD, TARGET) is None
        assert database.best_few(WORKLOAD, TARGET, 3) == []
        assert list(database.records()) == []
        assert database.nearest(WORKLOAD, TARGET) == []
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
        self.put(database, lost(3), workload=_shape(1))
        assert database.trials(WORKLOAD, TARGET) == 2
        assert len(list(database.records(WORKLOAD))) == 5
        other, summary = database.summaries()
        assert (summary.trials, summary.failures, summary.lost) == (2, 1, 3)
        assert (other.workload, other.trials, other.lost, other.score) == (_shape(1), 0, 1, None)

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

    def test_more_records_than_a_page(self, database, monkeypatch):
        monkeypatch.setattr("measure.database._PAGE", 3)
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
            ({"round": "third"}, "search, final"),
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

    # -- runs ------------------------------------------------------------------------------

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

    # -- one attempt is one row ------------------------------------------------------------

    def test_the_same_attempt_twice_is_one_row(self, database):
        attempt = measured(1, 1.0, at=5.0)
        assert self.put(database, attempt, attempt) == [True, False]
        assert len(list(database.records())) == 1

    def test_measuring_again_is_another_row(self, database):
        again = [measured(1, 1.0, at=5.0), measured(1, 1.0, at=6.0), measured(1, 1.0, "final", 5.0)]
        assert self.put(database, *again) == [True, True, True]
        assert database.trials(WORKLOAD, TARGET) == 1

    # -- what ranks as best ----------------------------------------------------------------

    def test_the_fastest_wins(self, database):
        self.put(database, measured(1, 3.0), measured(2, 1.0), failed(3), measured(4, 2.0))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(2)
        found = database.best_few(WORKLOAD, TARGET, 2)
        assert [record.schedule["mc"] for record in found] == [2, 4]

    def test_of_equals_the_first_wins(self, database):
        self.put(database, measured(7, 1.0), measured(3, 1.0))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(7)

    def test_slow_and_failed_never_win(self, database):
        self.put(database, replace(measured(1, 1.0), status=Status.SLOW), failed(2))
        assert database.best(WORKLOAD, TARGET) is None

    def test_other_workloads_and_targets_do_not_count(self, database):
        self.put(database, measured(1, 0.1), target=replace(TARGET, threads=2))
        self.put(database, measured(2, 0.1), workload=workload("matmul", m=64, n=96, k=128))
        self.put(database, measured(3, 1.0))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(3)

    def test_a_final_score_replaces_the_search_score_of_its_schedule(self, database):
        self.put(database, measured(1, 0.5), measured(2, 0.9))
        self.put(database, measured(1, 1.0, "final"), measured(2, 0.95, "final"))
        best = database.best(WORKLOAD, TARGET)
        assert (best.schedule, best.measurement.score) == (schedule(2), 0.95)
        assert len(database.best_few(WORKLOAD, TARGET, 9)) == 2

    def test_luck_in_the_search_does_not_beat_a_final_winner(self, database):
        self.put(database, measured(1, 1.0), measured(2, 0.98), measured(1, 1.02, "final"))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(1)

    def test_a_search_score_far_ahead_wins_without_a_final_round(self, database):
        self.put(database, measured(1, 1.0, "final"), measured(2, 0.5))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(2)

    def test_a_schedule_found_wrong_in_the_final_round_is_out(self, database):
        wrong = replace(failed(1, ErrorKind.WRONG), round="final")
        self.put(database, measured(1, 0.5), measured(2, 1.0), wrong)
        assert database.best(WORKLOAD, TARGET).schedule == schedule(2)

    def test_only_the_last_comparison_of_a_schedule_counts(self, database):
        finals = [measured(1, 0.8, "final", 2.0), measured(1, 1.0, "final", 1.0)]
        self.put(database, measured(1, 0.7), *finals, measured(2, 0.9, "final", 1.0))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [(r.schedule, r.measurement.score) for r in found] == [
            (schedule(2), 0.9),
            (schedule(1), 1.0),
        ]

    def test_a_schedule_found_wrong_when_compared_again_is_out(self, database):
        wrong = replace(failed(1, ErrorKind.WRONG), round="final", started_at=2.0)
        self.put(database, measured(1, 0.5, "final", 3.0), wrong, measured(2, 1.0))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(2)

    def test_a_clock_that_was_ahead_wins_nothing(self, database):
        self.put(database, measured(1, 1e-9, "final", at=4e9), measured(1, 5e-6, "final", at=2e9))
        best = database.best(WORKLOAD, TARGET)
        assert best.measurement.score == 5e-6

    def test_a_final_round_that_the_machine_lost_says_nothing(self, database):
        self.put(database, measured(1, 0.5), measured(2, 1.0), replace(lost(1), round="final"))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(1)

    def test_what_a_comparison_passed_over_does_not_beat_it(self, database):
        self.put(database, measured(1, 1.0), measured(2, 1.01), measured(3, 0.2))
        self.put(database, measured(1, 1.3, "final"), measured(4, 1.2))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [record.schedule["mc"] for record in found] == [3, 1, 4, 2]

    def test_a_schedule_is_known_by_its_last_search(self, database):
        self.put(database, measured(1, 1.0, at=1.0), measured(2, 1.2), measured(1, 1.5, at=2.0))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [record.measurement.score for record in found] == [1.2, 1.5]

    def test_what_was_compared_is_known_by_a_search_since_as_well(self, database):
        self.put(database, measured(1, 1.0), measured(1, 1.3, "final"))
        self.put(database, measured(1, 0.99, at=1.0), measured(2, 1.0))
        best = database.best(WORKLOAD, TARGET)
        assert (best.schedule, best.measurement.score) == (schedule(1), 0.99)

    @FEW
    @given(history=histories)
    def test_what_ranks_is_said_by_one_rule(self, database, history):
        target = replace(TARGET, threads=len(database.summaries()) + 1)  # that no other example has
        database.record_all(
            [
                replace(attempt(replace(m, started_at=float(i)), target=target), doubted=doubted)
                for i, (m, doubted) in enumerate(history)
            ]
        )
        sound = [measurement for measurement, doubted in history if not doubted]
        expected: dict[Schedule, float] = {}
        for _, m in Ranking(sound).standing:
            expected.setdefault(m.schedule, m.score)
        found = database.best_few(WORKLOAD, target, 99)
        first = [(r.schedule, r.measurement.score) for r in found if not r.doubted]
        assert first == list(expected.items())
        assert not any(record.doubted for record in found[: len(first)])
        best = database.best(WORKLOAD, target)
        (summary,) = (s for s in database.summaries() if s.target == target)
        assert summary.score == (best.measurement.score if best else None)
        if first:
            assert database.nearest(_shape(64), target) == [best]

    def test_what_is_doubted_ranks_last(self, database):
        self.put(database, measured(1, 1e-9, "final"), measured(2, 2.0), measured(3, 1.0))
        database.doubt(database.best(WORKLOAD, TARGET))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [(r.schedule["mc"], r.doubted) for r in found] == [(3, False), (2, False), (1, True)]
        (summary,) = database.summaries()
        assert (summary.score, summary.doubted) == (1.0, False)

    def test_what_is_doubted_replaces_nothing(self, database):
        self.put(database, measured(1, 1.0), measured(1, 1e-9, "final"))
        database.doubt(database.best(WORKLOAD, TARGET))
        best = database.best(WORKLOAD, TARGET)
        assert (best.measurement.score, best.doubted) == (1.0, False)

    def test_what_is_doubted_is_not_what_is_known_of_others(self, database):
        self.put(database, measured(1, 1e-9), workload=_shape(128))
        self.put(database, measured(1, 1.0), workload=_shape(512))
        database.doubt(database.best(_shape(128), TARGET))
        found = database.nearest(_shape(64), TARGET)
        assert [record.workload for record in found] == [_shape(512)]

    def test_some_versions_of_templates(self, database):
        self.put(database, measured(1, 0.5))
        database.record(Record(WORKLOAD, TARGET, "contraction.2", measured(2, 1.0)))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(1)
        assert database.best(WORKLOAD, TARGET, ["contraction.2"]).schedule == schedule(2)
        assert database.best(WORKLOAD, TARGET, ["contraction.3"]) is None
        assert database.best(WORKLOAD, TARGET, []) is None
        found = database.best_few(WORKLOAD, TARGET, 9, {"contraction.2", "thin.1"})
        assert [record.schedule for record in found] == [schedule(2)]

    # -- what is known of others -----------------------------------------------------------

    def test_nearest_shapes_first(self, database):
        for m in (1024, 128, 2048):
            self.put(database, measured(m, 1.0), workload=_shape(m))
        self.put(database, failed(1), workload=_shape(60))
        self.put(database, measured(64, 1.0), workload=_shape(64))
        self.put(database, measured(1, 1.0), workload=_shape(100), target=replace(TARGET, cores=8))
        found = database.nearest(_shape(64), TARGET)
        assert [record.workload.extents["m"] for record in found] == [128, 1024, 2048]
        assert len(database.nearest(_shape(64), TARGET, 1)) == 1

    def test_the_same_types_are_nearer_than_the_same_shape(self, database):
        self.put(database, measured(1, 1.0), workload=_shape(64, dtype="bfloat16"))
        self.put(database, measured(2, 1.0), workload=_shape(4096))
        found = database.nearest(_shape(64), TARGET)
        assert [record.schedule["mc"] for record in found] == [2, 1]

    def test_words_that_only_some_workloads_have(self, database):
        self.put(database, measured(1, 1.0), workload=_shape(64, dtype="float16"))
        half = _shape(64, dtype="float16", accumulator="float16")
        self.put(database, measured(2, 1.0), workload=half)
        found = database.nearest(_shape(32, dtype="float16"), TARGET)
        assert [record.schedule["mc"] for record in found] == [1, 2]
        found = database.nearest(_shape(32, dtype="float16", accumulator="float16"), TARGET)
        assert [record.schedule["mc"] for record in found] == [2, 1]

    def test_summaries(self, database):
        self.put(database, measured(1, 2.0), measured(1, 1.5, "final"), failed(2))
        self.put(database, failed(1), target=replace(TARGET, threads=2))
        one, two = database.summaries()
        assert (one.workload, one.target, one.trials, one.failures) == (WORKLOAD, TARGET, 2, 1)
        assert one.score == 1.5
        assert (two.target.threads, two.trials, two.failures, two.score) == (2, 1, 1, None)

    # -- many at once ----------------------------------------------------------------------

    def test_threads_record_and_query_at_once(self, database):
        errors = []

        def write(first):
            try:
                self.put(database, *(measured(first + i, 1.0 + i) for i in range(20)))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(100 * t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            best = database.best(WORKLOAD, TARGET)
            assert best is None or best.measurement.score == 1.0 or best.schedule["mc"] % 100
        assert not errors
        assert database.trials(WORKLOAD, TARGET) == 80

    def test_a_schedule_that_several_record_at_once_is_one_trial(self, database):
        start = threading.Barrier(4)

        def write(thread):
            for i in range(10):
                start.wait()
                self.put(database, measured(i, 1.0 + thread, at=thread))

        threads = [threading.Thread(target=write, args=(t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert database.trials(WORKLOAD, TARGET) == 10
        assert len(list(database.records())) == 40

    def test_two_processes_make_and_fill_one_database(self, new_location):
        context = multiprocessing.get_context("spawn")
        shares = [(new_location, 1000 * i) for i in range(2)]
        writers = [context.Process(target=write_many, args=share) for share in shares]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
        with Database(new_location) as database:
            assert database.trials(WORKLOAD, TARGET) == 100
            assert len(list(database.records())) == 100

    def test_thousands_of_new_pairs_at_once(self, database):
        """More than one statement takes; the counts of each are right."""
        several = [
            attempt(measured(i % 3, 1.0, at=i // 1050), _shape(1 + i % 1050)) for i in range(2100)
        ]
        assert database.record_all([*several, *several[:7]]) == 2100
        assert database.record_all(several[::-1]) == 0
        assert [record.workload for record in database.records()] == [r.workload for r in several]
        assert {(s.trials, s.failures, s.lost) for s in database.summaries()} == {(1, 0, 0)}

    # -- upkeep ----------------------------------------------------------------------------

    def test_merging_loses_nothing_and_adds_nothing_twice(self, database, tmp_path):
        run = a_run(started_at=1.0, heartbeat=1.0)
        database.begin_run(run)
        self.put(database, measured(1, 1.0), failed(2), measured(3, 1e-12, "final"), lost(4))
        database.doubt(database.best(WORKLOAD, TARGET))
        with Database(tmp_path / "other.db") as other:
            self.put(other, measured(1, 1.0), measured(5, 2.0), workload=_shape(8))
            self.put(other, measured(1, 1.0))
            other.begin_run(a_run(key="other", heartbeat=2.0))
            theirs = list(other.records())
            assert other.merge(database) == 3
            assert other.merge(database) == 0
            everything = {record.key: record for record in (*database.records(), *theirs)}
            assert {record.key: record for record in other.records()} == everything
            assert {run.key for run in other.runs()} == {run.key, "other"}
            assert database.merge(other) == 2
            assert other.merge(other) == 0
            assert {record.key for record in database.records()} == everything.keys()
            for summary in database.summaries():
                assert summary in other.summaries()

    def test_what_is_doubted_anywhere_is_doubted_where_it_is_merged(self, database, tmp_path):
        self.put(database, measured(1, 1.0), measured(2, 2.0))
        with Database(tmp_path / "other.db") as other:
            assert other.merge(database) == 2
            other.doubt(other.best(WORKLOAD, TARGET))
            assert database.best(WORKLOAD, TARGET).schedule == schedule(1)
            assert database.merge(other) == 0
            assert other.merge(database) == 0
            for merged in (database, other):
                assert [record.doubted for record in merged.records()] == [True, False]
                assert merged.best(WORKLOAD, TARGET).schedule == schedule(2)

    def test_merging_keeps_the_later_state_of_a_run(self, database, tmp_path):
        database.begin_run(a_run())
        with Database(tmp_path / "other.db") as other:
            other.merge(database)
            database.end_run("9af0", "trials")
            other.merge(database)
            assert list(other.runs()) == list(database.runs())
            other.beat("9af0")
            (alive,) = other.runs()
            database.merge(other)
            assert list(database.runs()) == [alive]

    def test_stats(self, database):
        assert database.stats().measurements == 0
        self.put(database, measured(1, 1.0), failed(2), lost(3), failed(4))
        self.put(database, measured(1, 1.0), target=replace(TARGET, threads=2))
        database.begin_run(a_run())
        found = database.stats()
        assert (found.workloads, found.targets, found.pairs, found.runs) == (1, 2, 2, 1)
        assert (found.measurements, found.failures, found.lost) == (5, 2, 1)
        assert found.bytes > 10_000

    def test_vacuum_changes_nothing_that_is_read(self, database):
        self.put(database, *(measured(i, 1.0 + i) for i in range(9)))
        before = list(database.records())
        database.vacuum()
        assert list(database.records()) == before
        assert self.put(database, measured(9, 0.5)) == [True]
        assert database.best(WORKLOAD, TARGET).schedule == schedule(9)

    # -- export and import -----------------------------------------------------------------

    @FEW
    @given(some=st.lists(possible, max_size=3))
    def test_export_and_import_lose_nothing(self, database, tmp_path, some):
        self.put(database, *some)
        everything = list(database.records())
        assert database.export_jsonl(tmp_path / "all.jsonl") == len(everything)
        with Database(tmp_path / "other.db") as other:
            other.import_jsonl(tmp_path / "all.jsonl", pytest.fail)
            assert other.import_jsonl(tmp_path / "all.jsonl") == 0
            assert list(other.records()) == everything
            other.export_jsonl(tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()

    def test_import_adds_to_what_is_there(self, database, tmp_path):
        self.put(database, measured(1, 1.0, at=1.0), measured(2, 1.0, at=2.0))
        database.export_jsonl(tmp_path / "two.jsonl")
        self.put(database, measured(3, 0.5, at=3.0))
        with Database(tmp_path / "other.db") as other:
            self.put(other, measured(2, 1.0, at=2.0), measured(4, 0.4, at=4.0))
            assert other.import_jsonl(tmp_path / "two.jsonl") == 1
            assert {record.schedule["mc"] for record in other.records()} == {1, 2, 4}

    def test_records_that_cannot_be_true_are_refused_and_the_others_imported(
        self, database, tmp_path
    ):
        honest = [measured(1, 1e-3), failed(2), measured(3, 2e-3, "final")]
        self.put(database, honest[0], replace(measured(4, 1e-12, "final"), started_at=9e9))
        self.put(database, honest[1], measured(5, 1e-12), replace(measured(6, 1.0), samples=()))
        self.put(database, honest[2], replace(measured(7, 1e-3), score=0.9e-3))
        database.export_jsonl(tmp_path / "some.jsonl")
        reports = []
        with Database(tmp_path / "other.db") as other:
            assert other.import_jsonl(tmp_path / "some.jsonl", reports.append) == len(honest)
            assert [record.measurement for record in other.records()] == honest
            assert other.best(WORKLOAD, TARGET).measurement == honest[0]
        assert [report.replace(str(tmp_path), "") for report in reports] == [
            "2 of the records of /some.jsonl were refused: scores that their hardware cannot reach "
            "(the first in line 3)",
            "1 of the records of /some.jsonl were refused: scores without samples "
            "(the first in line 6)",
            "1 of the records of /some.jsonl were refused: scores that are not the statistic of "
            "their samples (the first in line 8)",
        ]

    def test_a_torn_last_line_is_reported_and_left_out(self, database, tmp_path):
        path = tmp_path / "torn.jsonl"
        self.put(database, measured(1, 1.0), measured(2, 1.0))
        database.export_jsonl(path)
        whole = path.read_bytes()
        lines = whole.splitlines(keepends=True)
        cuts = random.Random(1).sample(range(1, len(lines[-1]) - 1), 10)
        for cut in cuts:
            path.write_bytes(whole[: -len(lines[-1]) + cut])
            reports = []
            with Database(tmp_path / f"{cut}.db") as other:
                assert other.import_jsonl(path, reports.append) == 1
            (report,) = reports
            assert "line 3" in report

    def test_a_last_line_without_its_newline_counts(self, database, tmp_path):
        path = tmp_path / "cut.jsonl"
        self.put(database, measured(1, 1.0), measured(2, 1.0))
        database.export_jsonl(path)
        path.write_bytes(path.read_bytes()[:-1])
        with Database(tmp_path / "other.db") as other:
            assert other.import_jsonl(path, pytest.fail) == 2

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda line: "{", "line 2 of .* is malformed: not JSON"),
            (lambda line: "[]", "expected a JSON object"),
            (lambda line: line.replace('"ok"', '"great"'), "allowed: ok, slow, error, lost"),
            (lambda line: line.replace('"m":64', '"m":-64'), "m=-64"),
            (lambda line: line.replace('"clock"', '"watch"'), "'clock' is missing"),
            (lambda line: line.replace('"clock"', '"more":1,"clock"'), "'more' is unknown"),
            (lambda line: line.replace('"isa"', '"usa"'), "malformed description of a cpu target"),
            (lambda line: line.replace('"mc":1', '"mc":[1]'), r"decision 'mc' has value \[1\]"),
            (lambda line: line.replace('"score":1.0', '"score":1e999'), "score=inf"),
            (lambda line: line.replace('"score":1.0', '"score":NaN'), "NaN"),
            (lambda line: line.replace('"started_at":0.0', '"started_at":1e999'), "inf"),
            (lambda line: line.replace('"m":64', '"operator":1'), "no parameter 'operator'"),
            (lambda line: "[" * 100_000, "not JSON"),
            (lambda line: line.replace('"score":1.0', f'"score":{HUGE}'), "score=1000"),
            (lambda line: line.replace('"samples":[', f'"samples":[{HUGE},'), "samples="),
            (lambda line: line.replace('"started_at":0.0', f'"started_at":{HUGE}'), "started_at=1"),
            (
                lambda line: line.replace('"recorded_at":', f'"recorded_at":{HUGE}'),
                "recorded_at=inf",
            ),
            (lambda line: line.replace('"cores":4', f'"cores":{HUGE}'), "target=1000"),
            (lambda line: line.replace('"mc":1', f'"mc":{10**30}'), "decision 'mc' has value 1000"),
            (lambda line: line.replace("mnk", "\\u001b[31m"), "decision 'order' has value"),
            (lambda line: line.replace("mnk", "m" * 5000), "decision 'order' has value"),
            (lambda line: line.replace("Example", "\\u001b]0;PWNED"), "target='.x1b]0;PWNED CPU'"),
            (lambda line: line.replace("Example", "\\ud800"), "target='.ud800 CPU'"),
            (lambda line: line.replace("relu", "\\u202e"), "workload='.u202e"),
            (lambda line: line.replace(VERSION, "\\ud800"), "template_version='.ud800' is"),
            (lambda line: line.replace('"clock":"cpu"', '"clock":"\\ud800"'), "clock='.ud800' is"),
        ],
    )
    def test_a_malformed_line_is_named(self, database, tmp_path, spoil, says):
        path = tmp_path / "bad.jsonl"
        self.put(database, measured(1, 1.0), measured(2, 1.0))
        database.export_jsonl(path)
        header, first, second = path.read_text().splitlines()
        path.write_text("\n".join((header, spoil(first), second, "")))
        with Database(tmp_path / "other.db") as other, pytest.raises(InputError, match=says):
            other.import_jsonl(path)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", "not an export"),
            ('{"a": 1}\n', "not an export"),
            ("\x00\x01", "not an export"),
            ('{"format":"tilewright-measurements","version":4}\n', "version 4; allowed: up to 3"),
            ('{"format":"tilewright-measurements","version":true}\n', "version True; allowed"),
            ('{"format":"tilewright-measurements","version":-1}\n', "version -1; allowed"),
        ],
    )
    def test_foreign_files_are_refused(self, database, tmp_path, text, says):
        (tmp_path / "foreign").write_text(text)
        with pytest.raises(InputError, match=says):
            database.import_jsonl(tmp_path / "foreign")

    def test_unreadable_and_unwritable_files(self, database, tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            database.import_jsonl(tmp_path / "missing")
        with pytest.raises(InputError, match="cannot write"):
            database.export_jsonl(tmp_path / "no" / "folder")
        os.mkfifo(tmp_path / "pipe")
        for place in ("/dev/full", tmp_path, tmp_path / "pipe"):
            kind = Path(place).stat().st_mode
            with pytest.raises(InputError, match="is no file; an export goes to a new file"):
                database.export_jsonl(place)
            assert Path(place).stat().st_mode == kind


def _shape(m: int, **parameters):
    return workload("matmul", m=m, n=64, k=64, **parameters)


def write_many(location: str, first: int) -> None:
    """Record fifty attempts; run in processes of their own."""
    with Database(location) as database:
        for number in range(first, first + 50):
            assert database.record(attempt(measured(number, 1.0)))
