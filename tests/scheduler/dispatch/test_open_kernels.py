"""Kernels of tables that take fewer rows: checked, timed, recorded, and called without copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.scheduler.dispatch.records import put
from tilewright.scheduler.dispatch import open_kernels
from tilewright.scheduler.dispatch.costs import Torch, known_kernels
from tilewright.scheduler.dispatch.explaining import table_text
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.finding import Tables
from tilewright.scheduler.dispatch.function import Dispatch
from tilewright.scheduler.dispatch.keeping import keep
from tilewright.scheduler.dispatch.making import Request, selected
from tilewright.scheduler.dispatch.open_kernels import open_function, open_seconds, time_open
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.table import Row, table_from_json
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target

TARGET = detect_target("cpu")
TEXT, SIZE = "matmul n=40 k=24", 48
PROFILE = as_profile(f"1-{SIZE}:1")
FAMILY = family_of(TEXT, "m", PROFILE)


def a_schedule() -> Schedule:
    space = space_for(workload(TEXT, m=SIZE), TARGET)
    rows = map(space.schedule, space.sample(np.random.default_rng(0), 64))
    return next(each for each in rows if not space.why_not_open(each, "m"))


def a_table(database):
    time_open(FAMILY, SIZE, best(database), TARGET, database)
    known = known_kernels(FAMILY, PROFILE, TARGET, database)
    return selected(Request(FAMILY, PROFILE, TARGET, 1), known, Torch(), known)


def best(database) -> Schedule:
    put(database, {SIZE: 1e-3}, TARGET, TEXT)
    (kernel,) = known_kernels(FAMILY, PROFILE, TARGET, database)
    return kernel.schedule


def test_times_of_fewer_rows_are_recorded_and_heeded(database):
    schedule = best(database)
    assert open_seconds(FAMILY, SIZE, schedule, TARGET, database) == ()
    time_open(FAMILY, SIZE, schedule, TARGET, database)
    times = open_seconds(FAMILY, SIZE, schedule, TARGET, database)
    assert len(times) == SIZE + 1
    assert all(0 < each < 1 for each in times)
    assert open_seconds(FAMILY, SIZE, schedule, replace(TARGET, model="Other"), database) == ()
    (kernel,) = known_kernels(FAMILY, PROFILE, TARGET, database)
    assert kernel.is_open
    assert kernel.fewer == times


def test_calls_of_fewer_rows_need_no_copies(database, monkeypatch):
    table = a_table(database)
    assert table.rows == (Row(1, SIZE, SIZE),)
    assert "open, whole" in table_text(table)
    call = Dispatch(table_from_json(table.to_json()))
    monkeypatch.setattr("tilewright.scheduler.dispatch.function._Plan", None)
    draw = np.random.default_rng(0)
    for rows in range(1, SIZE + 1):
        a, b = (draw.random(shape, np.float32) for shape in ((rows, 24), (24, 40)))
        out = np.full((rows + 2, 40), 7.0, np.float32)
        np.testing.assert_allclose(call(a, b, out=out[1:-1]), a @ b, rtol=1e-5)
        assert (out[[0, -1]] == 7.0).all()


def test_what_remains_of_pieces_needs_no_copies_either(database):
    table = replace(a_table(database), rows=(Row(1, 3 * SIZE, SIZE),))
    assert [p.rows for p in table.pieces(2 * SIZE + 5, {SIZE})] == [SIZE, SIZE, 5]
    call, draw = Dispatch(table), np.random.default_rng(0)
    a, b = (draw.random(shape, np.float32) for shape in ((2 * SIZE + 5, 24), (24, 40)))
    np.testing.assert_allclose(call(a, b), a @ b, rtol=1e-5)


def test_kept_tables_are_found_with_their_open_kernels(database):
    table = a_table(database)
    keep(table, database)
    found = Tables(database, TARGET).of(FAMILY)
    assert found == table
    assert found.kernels[0].fewer == table.kernels[0].fewer != ()


def test_a_kernel_whose_rows_differ_is_not_recorded(database, monkeypatch):
    schedule = best(database)
    right = open_kernels.OpenFunction.__call__

    def wrong(self, *arrays, **named):
        found = right(self, *arrays, **named)
        if len(found) == 7:
            found[6, 39] += 1
        return found

    monkeypatch.setattr(open_kernels.OpenFunction, "__call__", wrong)
    time_open(FAMILY, SIZE, schedule, TARGET, database)
    assert open_seconds(FAMILY, SIZE, schedule, TARGET, database) == ()


@pytest.mark.parametrize(
    "told",
    [
        {"rows": [1, 1], "open_seconds": [1e-3, 1e-3]},
        {"rows": [1, 2], "open_seconds": [1e-3]},
        {"rows": [1, "2"], "open_seconds": [1e-3, 1e-3]},
        {"rows": [1, 2], "open_seconds": [1e-3, -1e-3]},
        {"rows": 3, "open_seconds": "x"},
        {"rows": [1, 2], "open_seconds": [1e-3, 1e-3], "axis": "n"},
    ],
)
def test_malformed_times_count_for_nothing(database, told):
    schedule = best(database)
    told = {"schedule": schedule.key, "axis": "m"} | told
    open_kernels.record(FAMILY.at(SIZE), TARGET, database, told)
    assert open_seconds(FAMILY, SIZE, schedule, TARGET, database) == ()


def test_a_schedule_without_such_a_kernel_has_none():
    pairs = family_of(("y[m] = sum[k](exp(x[m] - z[k]))", {"k": 64}), "m", PROFILE)
    for family, has_one in ((pairs, False), (FAMILY, True)):
        space = space_for(family.at(8), TARGET)
        schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
        assert (open_function(family, 8, schedule, TARGET) is not None) is has_one
