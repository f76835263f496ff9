"""Many write to a database at once, and databases are merged."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
from dataclasses import replace

from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    DatabaseTests,
    a_run,
    attempt,
    failed,
    lost,
    measured,
    schedule,
    shape_of,
)


class SharingContract(DatabaseTests):
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

    def test_one_that_was_opened_twice_is_closed_once(self, database, location):
        with Database(location) as other:
            self.put(other, measured(1, 1.0))
        self.put(database, measured(2, 1.0))
        assert database.trials(WORKLOAD, TARGET) == 2

    def test_a_forked_child_has_connections_of_its_own(self, database, location):
        self.put(database, measured(1000, 1.0))
        child = multiprocessing.get_context("fork").Process(target=write_many, args=(location, 0))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert database.trials(WORKLOAD, TARGET) == 51

    def test_a_forked_child_may_ask_what_its_parent_has_open(self, database):
        self.put(database, measured(1, 1.0))
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=ask_often, args=(database,)) for _ in range(2)]
        for child in children:
            child.start()
        ask_often(database)
        for child in children:
            child.join(60)
            assert child.exitcode == 0

    def test_threads_that_open_and_close_at_once_leave_no_connection_open(self, new_location):
        Database(new_location).close()
        threads = [threading.Thread(target=open_often, args=(new_location,)) for _ in range(8)]
        gc.collect()
        gc.disable()
        try:
            before = len(os.listdir("/proc/self/fd"))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(os.listdir("/proc/self/fd")) == before
        finally:
            gc.enable()

    def test_thousands_of_new_pairs_at_once(self, database):
        """The pairs are more than one statement takes; the counts of each are right."""
        several = [
            attempt(measured(i % 3, 1.0, at=i // 1050), shape_of(1 + i % 1050)) for i in range(2100)
        ]
        assert database.record_all([*several, *several[:7]]) == 2100
        assert database.record_all(several[::-1]) == 0
        assert [record.workload for record in database.records()] == [r.workload for r in several]
        assert {(s.trials, s.failures, s.lost) for s in database.summaries()} == {(1, 0, 0)}

    def test_merging_loses_nothing_and_adds_nothing_twice(self, database, tmp_path):
        run = a_run(started_at=1.0, heartbeat=1.0)
        database.begin_run(run)
        self.put(database, measured(1, 1.0), failed(2), measured(3, 1e-12, "final"), lost(4))
        database.doubt(database.best(WORKLOAD, TARGET))
        with Database(tmp_path / "other.db") as other:
            self.put(other, measured(1, 1.0), measured(5, 2.0), workload=shape_of(8))
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


def ask_often(database: Database) -> None:
    """Ask a hundred questions about one record."""
    for _ in range(100):
        assert database.trials(WORKLOAD, TARGET) == 1


def open_often(location: str) -> None:
    """Twenty databases, one after the other, with a question each."""
    for _ in range(20):
        with Database(location) as database:
            assert database.trials(WORKLOAD, TARGET) == 0


def write_many(location: str, first: int) -> None:
    """Record fifty attempts; run in processes of their own."""
    with Database(location) as database:
        for number in range(first, first + 50):
            assert database.record(attempt(measured(number, 1.0)))
