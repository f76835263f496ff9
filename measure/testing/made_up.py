"""Records, runs and histories that tests of databases make up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind, Measurement, Place, Status
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Run
from tilewright.measure.timing import score_by_clock
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.validation.text import spelled_out

TARGET = made_up_cpu(
    model="Example CPU",
    isa="avx2",
    vector_bytes=32,
    vector_registers=16,
    cores=4,
    l2_bytes=512 << 10,
    l3_bytes=16 << 20,
    compiler_version="12.2.0",
    flags=("-O2", "-march=native"),
)
"""Old exports and databases, which tests read, have records of it."""
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
durations = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
attempts = st.builds(
    Measurement,
    schedule=st.integers(0, 10**6).map(schedule),
    status=st.sampled_from([Status.OK, Status.SLOW]),
    score=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    samples=st.lists(durations).map(tuple),
    reference_samples=st.lists(durations).map(tuple),
    clock=st.sampled_from(["cpu", "wall", "device"]),
    round=st.sampled_from(["search", "preliminary", "final"]),
    error_kind=st.none() | st.sampled_from(ErrorKind),
    error_text=st.text().map(spelled_out),
    build_seconds=durations,
    run_seconds=durations,
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
            st.sampled_from(["search", "search", "preliminary", "final"]),
            st.sampled_from(["ok", "ok", "ok", "slow", "failed", "lost"]),
        ),
        st.sampled_from([False, False, False, True]),  # whether a run doubted it
    ),
    min_size=1,
    max_size=12,
)
"""Attempts of a few schedules, in the order in which they became known."""


def shape_of(m: int, **parameters):
    return workload("matmul", m=m, n=64, k=64, **parameters)


class DatabaseTests:
    """Gives the parts of the contract a database, and what to put into it."""

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
