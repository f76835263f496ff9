"""Open kernels of a GPU in tables: verified with each number of rows, timed, recorded, called."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.kernels import planted
from tests.measure.cuda import emulated_device
from tests.measure.cuda.emulated_device import PackingBuilder
from tests.scheduler.dispatch.records import put_schedule
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.timing import TimingProtocol
from tilewright.scheduler.dispatch import making
from tilewright.scheduler.dispatch.costs import Torch, known_kernels
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.finding import Tables
from tilewright.scheduler.dispatch.function import Dispatch
from tilewright.scheduler.dispatch.keeping import keep
from tilewright.scheduler.dispatch.making import Request, selected
from tilewright.scheduler.dispatch.measuring import device_seconds
from tilewright.scheduler.dispatch.open_functions import open_functions
from tilewright.scheduler.dispatch.open_kernels import open_seconds, openable, time_open
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.table import Row, Table
from tilewright.scheduler.dispatch.timing import recorded
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

TARGET = detect_target("cuda:sm_90a")
OPENER = "tests.measure.cuda.emulated_device:open_device"
SIZE = 5
PROFILE = as_profile(f"1-{SIZE}:1")
FAMILY = family_of("matmul n=24 k=16 dtype=bfloat16", "m", PROFILE)


@pytest.fixture(scope="module")
def executor(tmp_path_factory) -> Iterator[LocalExecutor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(emulated_device.LIBRARIES, str(tmp_path_factory.mktemp("libraries")))
        patch.setattr("tilewright.measure.cuda.child.STARTING_SECONDS", 280.0)  # it compiles, too
        protocol = TimingProtocol(samples=2, contender_samples=1)
        runner = CudaRunner(TARGET, OPENER, protocol, least_seconds=200)
        builder = PackingBuilder(NvrtcBuilder(TARGET, jobs=2))
        made = LocalExecutor(TARGET, builder=builder, runner=runner)
        yield made
        made.close()


def some_schedules() -> list[Schedule]:
    """A schedule of each template that has open kernels."""
    space = space_for(FAMILY.at(SIZE), TARGET)
    every = map(space.schedule, space.sample(np.random.default_rng(1), 64))
    found = {each.template: each for each in openable(FAMILY, SIZE, every, TARGET)}
    return [found[name] for name in ("mma", "thin")]


def test_kernels_that_are_wrong_with_some_rows_have_no_times(executor, monkeypatch):
    right = Space.lower_open
    first, second = some_schedules()

    def lower_open(space: Space, schedule: Schedule, axis: str) -> Kernel:
        kernel = right(space, schedule, axis)
        if schedule == second:  # it leaves out the last row of three
            end = "< open_extent - (open_extent == 3)"
            kernel = planted(kernel, r"< open_extent\b(?! -)", end, count=0)
        return kernel

    monkeypatch.setattr(Space, "lower_open", lower_open)
    sizes = (1, 3, SIZE)
    found = device_seconds(FAMILY, SIZE, [first, second], sizes, TARGET, executor)
    assert {rows for _, rows in found} == set(sizes)
    assert {schedule for schedule, _ in found} == {first}
    assert all(0 < seconds < 1 for seconds in found.values())
    assert device_seconds(FAMILY, SIZE, [second], sizes, TARGET, executor) == {}
    assert device_seconds(FAMILY, SIZE, [], sizes, TARGET, None) == {}  # nothing is asked of it


def test_rows_that_show_no_mistakes_are_left_out(executor, database):
    """The weight of one key alone is 1, whatever its score."""
    text = "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e])"
    kinds = "q: bfloat16[i,d]; k: bfloat16[j,d]; v: bfloat16[j,e]; "
    family = family_of((kinds + text, {"i": 16, "d": 16, "e": 16}), "j", PROFILE)
    space = space_for(family.at(SIZE), TARGET)
    every = map(space.schedule, space.sample(np.random.default_rng(1), 64))
    chained = (each for each in every if each.template == "chained")
    schedule = openable(family, SIZE, chained, TARGET)[0]
    time_open(family, SIZE, [schedule], TARGET, database, executor)
    (told,) = recorded(family.at(SIZE), TARGET, database)
    assert told["rows"] == [2, 3, 4, SIZE]
    assert set(open_seconds(family, SIZE, [schedule], TARGET, database)) == {schedule}


def a_table(database, executor) -> Table:
    """A table whose kernel takes any number of rows."""
    (schedule, _) = some_schedules()
    put_schedule(database, FAMILY.at(SIZE), schedule, 1e-5, TARGET)
    time_open(FAMILY, SIZE, [schedule], TARGET, database, executor)
    known = known_kernels(FAMILY, PROFILE, TARGET, database)
    return selected(Request(FAMILY, PROFILE, TARGET, 1), known, Torch(), known)


def test_tables_have_the_open_kernels_that_were_timed(executor, database):
    table = a_table(database, executor)
    assert table.rows == (Row(1, SIZE, SIZE),)
    (kernel,) = table.kernels
    assert [part.last for part in kernel.opened] == [SIZE]
    assert len(kernel.fewer) == SIZE + 1
    keep(table, database)
    assert Tables(database, TARGET).of(FAMILY) == table
    functions = open_functions(table, TARGET)[SIZE]
    (function,) = {functions.at(rows) for rows in range(1, SIZE)}
    assert function.schedule == kernel.opened[0].schedule
    assert Dispatch(table).choose(3) == table.rows[0]


def test_tuned_tables_time_what_can_be_open(executor, database, monkeypatch):
    (schedule, _) = some_schedules()
    put_schedule(database, FAMILY.at(SIZE), schedule, 1e-5, TARGET)
    given = []

    def timed(family, size, schedules, target, database, executor):
        given.append((size, schedules))

    monkeypatch.setattr(making, "time_open", timed)
    monkeypatch.setattr(making, "local_executor", lambda target: executor)
    monkeypatch.setattr(making, "closing", lambda held: making.nullcontext(held))
    making._time(Request(FAMILY, PROFILE, TARGET, 1), [SIZE], database)
    assert given == [(SIZE, [schedule])]
    assert open_seconds(FAMILY, SIZE, [schedule], TARGET, database) == {}
