"""Kernels of tables that take fewer rows: checked, timed, recorded, and called without copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.scheduler.dispatch.records import put, put_schedule
from tilewright.scheduler.dispatch import open_kernels
from tilewright.scheduler.dispatch.costs import Torch, known_kernels
from tilewright.scheduler.dispatch.explaining import table_text
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.finding import Tables
from tilewright.scheduler.dispatch.function import Dispatch
from tilewright.scheduler.dispatch.keeping import keep
from tilewright.scheduler.dispatch.making import Request, selected
from tilewright.scheduler.dispatch.open_functions import serving
from tilewright.scheduler.dispatch.open_kernels import open_function, open_seconds, time_open
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.table import OpenRange, Row, table_from_json
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import as_target, detect_target

TARGET = detect_target("cpu")
TEXT, SIZE = "matmul n=40 k=24", 48
PROFILE = as_profile(f"1-{SIZE}:1")
FAMILY = family_of(TEXT, "m", PROFILE)


def some_schedules(count: int) -> list[Schedule]:
    """Schedules that have open kernels."""
    space = space_for(FAMILY.at(SIZE), TARGET)
    every = dict.fromkeys(map(space.schedule, space.sample(np.random.default_rng(0), 64)))
    return [each for each in every if not space.why_not_open(each, "m")][:count]


def a_table(database):
    time_open(FAMILY, SIZE, [best(database)], TARGET, database)
    known = known_kernels(FAMILY, PROFILE, TARGET, database)
    return selected(Request(FAMILY, PROFILE, TARGET, 1), known, Torch(), known)


def best(database) -> Schedule:
    put(database, {SIZE: 1e-3}, TARGET, TEXT)
    (kernel,) = known_kernels(FAMILY, PROFILE, TARGET, database)
    return kernel.schedule


def test_times_of_fewer_rows_are_recorded_and_heeded(database):
    schedule = best(database)
    assert open_seconds(FAMILY, SIZE, [schedule], TARGET, database) == {}
    time_open(FAMILY, SIZE, [schedule], TARGET, database)
    (times,) = open_seconds(FAMILY, SIZE, [schedule], TARGET, database).values()
    assert len(times) == SIZE + 1
    assert all(0 < each < 1 for each in times)
    assert open_seconds(FAMILY, SIZE, [schedule], replace(TARGET, model="Other"), database) == {}
    (kernel,) = known_kernels(FAMILY, PROFILE, TARGET, database)
    assert kernel.opened == (OpenRange(SIZE, schedule),)
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


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_a_product_has_open_kernels_whatever_a_program_calls_its_rows(database, target):
    table = a_table(database)
    program = ("y[i,j] = sum[l](x[i,l] * w[l,j])", {"j": 40, "l": 24})
    family = family_of(program, "i", PROFILE)
    assert (family.axis, family.own_axis) == ("i", "m")
    assert open_kernels.why_not_open(family, SIZE, as_target(target)) is None
    (kernel,) = known_kernels(family, PROFILE, TARGET, database)
    assert kernel.opened == (OpenRange(SIZE, kernel.schedule),)
    assert kernel.fewer == table.kernels[0].fewer
    call = open_function(family, SIZE, kernel.schedule, TARGET)
    draw = np.random.default_rng(0)
    x, w = (draw.random(shape, np.float32) for shape in ((5, 24), (24, 40)))
    np.testing.assert_allclose(call(x, w), x @ w, rtol=1e-5)


def test_a_kernel_whose_rows_differ_is_not_recorded_beside_another(database, monkeypatch):
    schedules = wrong_one, _ = some_schedules(2)
    right = open_kernels.OpenFunction.__call__

    def wrong(self, *arrays, **named):
        found = right(self, *arrays, **named)
        if len(found) == 7 and self.schedule == wrong_one:
            found[6, 39] += 1
        return found

    monkeypatch.setattr(open_kernels.OpenFunction, "__call__", wrong)
    time_open(FAMILY, SIZE, [wrong_one], TARGET, database)
    assert open_seconds(FAMILY, SIZE, schedules, TARGET, database) == {}
    time_open(FAMILY, SIZE, schedules, TARGET, database)
    assert list(open_seconds(FAMILY, SIZE, schedules, TARGET, database)) == schedules[1:]


def test_each_number_of_rows_has_the_open_kernel_that_is_best_for_it(database, monkeypatch):
    """One schedule is recorded as fast up to 20 rows, and another beyond. A third one has no
    part in it."""
    few, many, slow = some_schedules(3)
    for score, schedule in enumerate((many, few, slow), start=1):
        put_schedule(database, FAMILY.at(SIZE), schedule, score * 1e-3, TARGET)
    rows = [1, 20, 21, SIZE]
    for schedule, seconds in ((few, [1, 1, 3, 3]), (many, [2, 2, 2, 2]), (slow, [4, 4, 4, 4])):
        told = {"schedule": schedule.key, "axis": "m", "rows": rows}
        told["open_seconds"] = [each * 1e-5 for each in seconds]
        open_kernels.record(FAMILY.at(SIZE), TARGET, database, told)
    known = known_kernels(FAMILY, PROFILE, TARGET, database)
    table = selected(Request(FAMILY, PROFILE, TARGET, 1), known, Torch(), known)
    (kernel,) = table.kernels
    assert kernel.opened == (OpenRange(20, few), OpenRange(SIZE, many))
    assert kernel.fewer[1:] == pytest.approx((*[1e-5] * 20, *[2e-5] * 28))
    assert "1-20, 21-48" in table_text(table)
    keep(table, database)
    found = Tables(database, TARGET).of(FAMILY)
    assert found == table
    assert found.kernels[0].fewer == kernel.fewer
    called = []
    right = open_kernels.OpenFunction.__call__

    def noted(self, *arrays, **named):
        called.append(self.schedule)
        return right(self, *arrays, **named)

    monkeypatch.setattr(open_kernels.OpenFunction, "__call__", noted)
    call, draw = Dispatch(table_from_json(table.to_json())), np.random.default_rng(0)
    for count in (1, 19, 20, 21, 47, SIZE):
        a, b = (draw.random(shape, np.float32) for shape in ((count, 24), (24, 40)))
        np.testing.assert_allclose(call(a, b), a @ b, rtol=1e-5)
    assert called == [few, few, few, many, many]
    longer = replace(table, rows=(Row(1, 3 * SIZE, SIZE),))
    a, b = (draw.random(shape, np.float32) for shape in ((SIZE + 5, 24), (24, 40)))
    np.testing.assert_allclose(Dispatch(longer)(a, b), a @ b, rtol=1e-5)
    assert called[5:] == [few]


def test_only_what_serves_is_built(database):
    table = a_table(database)
    schedule = table.kernels[0].schedule
    parts = tuple(OpenRange(last, schedule) for last in (8, 16, SIZE - 1, SIZE))
    kernel = replace(table.kernels[0], opened=parts)
    for first, last, served in ((1, SIZE, 3), (9, 16, 1), (8, 90, 3), (17, SIZE, 1), (SIZE, 90, 0)):
        rows = (*([Row(1, first - 1, 1)] if first > 1 else []), Row(first, last, SIZE))
        found = serving(replace(table, rows=rows), kernel)
        assert len(found) == served
        assert [each for each in parts if each in found] == found


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
    assert open_seconds(FAMILY, SIZE, [schedule], TARGET, database) == {}


def test_a_schedule_without_such_a_kernel_has_none():
    pairs = family_of(("y[m] = sum[k](exp(x[m] - z[k]))", {"k": 64}), "m", PROFILE)
    for family, has_one in ((pairs, False), (FAMILY, True)):
        space = space_for(family.at(8), TARGET)
        schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
        assert (open_function(family, 8, schedule, TARGET) is not None) is has_one
