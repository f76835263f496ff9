"""Databases under many writers and readers, and when those or the server are killed."""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count

import pytest

from tests.measure import postgresql
from tilewright.measure.database import Database
from tilewright.measure.records.record import Record
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    attempt,
    failed,
    measured,
    schedule,
)
from tilewright.spaces.operators import workload

BATCH = 64
SHAPES = [workload("matmul", m=m, n=64, k=64) for m in (16, 32, 48)]
SLOW = [pytest.mark.slow, pytest.mark.timeout(7200)]


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request, tmp_path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "tuning.db")
    return request.getfixturevalue("server").new_database()


# -- many at once --------------------------------------------------------------------------


def write(location: str, first: int, records: int) -> None:
    """Keep so many records in batches, each of all shapes; every third is a failure."""
    with Database(location) as database:
        for start in range(first, first + records, BATCH):
            numbers = range(start, min(start + BATCH, first + records))
            assert database.record_all([made(number) for number in numbers]) == len(numbers)


def made(number: int) -> Record:
    shape = SHAPES[number // 3 % len(SHAPES)]
    return attempt(failed(number) if number % 3 == 0 else measured(number, 1.0 + number), shape)


def read(location: str, ended) -> None:
    """Ask all there is to ask until the writers have ended. The best never gets worse."""
    best = float("inf")
    with Database(location, create=False) as database:
        while not ended.wait(0.01):
            found = database.best(SHAPES[0], TARGET)
            assert found is None or found.measurement.score <= best
            best = best if found is None else found.measurement.score
            assert len(list(database.nearest(WORKLOAD, TARGET))) <= len(SHAPES)
            known = sum(summary.trials for summary in database.summaries())
            assert known <= sum(database.trials(shape, TARGET) for shape in SHAPES)


@pytest.mark.parametrize(
    ("writers", "records", "readers"),
    [
        pytest.param(3, 64, 1, id="few"),
        pytest.param(8, 20_000, 4, id="many", marks=SLOW),
    ],
)
def test_nothing_is_lost_and_nobody_locked_out(location, writers, records, readers):
    Database(location).close()
    context = multiprocessing.get_context("spawn")
    ended = context.Event()
    shares = [(location, 1 + records * number, records) for number in range(writers)]
    writing = [context.Process(target=write, args=share) for share in shares]
    reading = [context.Process(target=read, args=(location, ended)) for _ in range(readers)]
    for process in (*writing, *reading):
        process.start()
    for process in writing:
        process.join()
    ended.set()
    for process in reading:
        process.join()
    assert [process.exitcode for process in (*writing, *reading)] == [0] * (writers + readers)
    check(location, range(1, 1 + writers * records))


def check(location: str, numbers: range) -> None:
    """All of these records are there, each once, and counted."""
    with Database(location, create=False) as database:
        assert sorted(record.schedule["mc"] for record in database.records()) == list(numbers)
        kept = {
            summary.workload: (summary.trials, summary.failures) for summary in database.summaries()
        }
    records = [made(number) for number in numbers]
    for shape in SHAPES:
        own = [record.measurement for record in records if record.workload == shape]
        assert kept[str(shape)] == (len(own), sum(not measurement.ok for measurement in own))


# -- killed at any moment ------------------------------------------------------------------


def write_for_ever(location: str, first: int) -> None:
    """Record attempts and say each on standard output once it is kept."""
    with Database(location) as database:
        for number in count(first):
            assert database.record(attempt(measured(number, 1.0)))
            print(number, flush=True)


def writer(location: str, first: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", __name__, location, str(first)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def told(process: subprocess.Popen[str]) -> Iterator[int]:
    """The numbers that a writer said were kept; the last line may be torn."""
    return (int(line) for line in process.stdout if line.endswith("\n"))


def kept(location: str) -> set[int]:
    """The numbers of all records, which are as often there as they are counted."""
    with Database(location, create=False) as database:
        numbers = [record.schedule["mc"] for record in database.records()]
        assert database.trials(WORKLOAD, TARGET) == len(numbers) == len(set(numbers))
    return set(numbers)


@pytest.mark.parametrize("kills", [3, pytest.param(300, marks=SLOW)])
def test_a_writer_killed_at_any_moment_loses_nothing_it_was_told_is_kept(location, kills):
    """Also while it starts and makes the database: half of the moments are that early."""
    chance, known = random.Random(kills), set()
    for kill in range(kills):
        with writer(location, 100_000 * kill) as process:
            if kill % 2:
                known.add(int(process.stdout.readline()))
            time.sleep(chance.random() * (0.1 if kill % 2 else 1.5))
            process.kill()
            known |= set(told(process))
        Database(location).close()
        found = kept(location)
        assert found >= known
        assert len(found - known) <= kill + 1  # one may be unsaid at each kill
    with Database(location) as database:
        assert database.record(attempt(measured(10**9, 0.5)))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(10**9)


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=SLOW)])
def test_a_server_killed_under_load_loses_nothing_it_said_is_kept(server_binaries, kills):
    chance, known = random.Random(kills), set()
    with postgresql.server(server_binaries) as server:
        location = server.new_database()
        Database(location).close()
        for kill in range(kills):
            firsts = [1_000_000 * kill + 100_000 * number for number in range(3)]
            writers = [writer(location, first) for first in firsts]
            known |= {int(process.stdout.readline()) for process in writers}
            time.sleep(chance.random() * 0.5)
            server.kill()
            for process in writers:
                known |= set(told(process))
                (*_, last) = process.communicate()[1].splitlines()
                assert "cannot be used: " in last
                assert process.returncode == 1
            server.start()
            found = kept(location)
            assert found >= known
            assert len(found - known) <= len(writers) * (kill + 1)
        with Database(location) as database:
            assert database.record(attempt(measured(10**9, 0.5)))
            assert database.best(WORKLOAD, TARGET).schedule == schedule(10**9)


if __name__ == "__main__":
    write_for_ever(sys.argv[1], int(sys.argv[2]))
