"""Times from memory: measured on this machine, recorded, and heeded by tables."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from tests.scheduler.dispatch.records import PRODUCT, a_schedule, put
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Run
from tilewright.scheduler.dispatch.costs import known_kernels
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.timing import (
    COMMAND,
    in_turns,
    time_from_memory,
    times_from_memory,
)
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

TARGET = detect_target("cpu")
WORK = workload(PRODUCT, m=8)
PROFILE = as_profile("1-9:1")


def two_schedules(database):
    """Two schedules on record, the first with the lower latency."""
    space = space_for(WORK, TARGET)
    rows = space.sample(np.random.default_rng(1), 64)
    first = a_schedule(8, TARGET)
    second = next(each for each in map(space.schedule, rows) if each != first)
    put(database, {8: 1e-5}, TARGET)
    measurement = Measurement(second, Status.OK, 2e-5, started_at=1.0)
    assert database.record(Record(WORK, TARGET, space.version_of(second), measurement))
    return first, second


def timed(database, schedule, seconds, **changes):
    run = Run(
        key=f"{seconds}{changes}",
        workload=WORK,
        target=TARGET,
        session=f"dispatch {WORK.digest}",
        command=COMMAND,
        configuration={"schedule": schedule.key, "from_memory_seconds": seconds},
    )
    database.begin_run(replace(run, **changes))


def known(database):
    (found,) = known_kernels(family_of(PRODUCT, "m", PROFILE), PROFILE, TARGET, database)
    return found


def test_the_best_few_are_timed_here_and_kept(database):
    both = two_schedules(database)
    time_from_memory(WORK, TARGET, database)
    times = times_from_memory(WORK, TARGET, database)
    assert set(times) == {schedule.key for schedule in both}
    assert all(0 < seconds < 1 for seconds in times.values())
    best = min(both, key=lambda schedule: times[schedule.key])
    assert (known(database).schedule, known(database).seconds) == (best, times[best.key])
    assert times_from_memory(workload(PRODUCT, m=7), TARGET, database) == {}


@pytest.mark.parametrize("text", ["softmax c=20", '"t: int32[r](sorted < 9); y[r] = x[t[r]]"'])
def test_programs_get_inputs_within_their_limits(database, text):
    work = workload(text, r=8)
    put(database, {8: 1e-5}, TARGET, text, "r")
    time_from_memory(work, TARGET, database)
    assert len(times_from_memory(work, TARGET, database)) == 1


def test_tables_take_the_fastest_from_memory_and_the_latest_time(database):
    first, second = two_schedules(database)
    assert known(database).schedule == first
    timed(database, first, 4e-5)
    timed(database, second, 3e-5)
    assert (known(database).schedule, known(database).seconds) == (second, 3e-5)
    timed(database, first, 1e-5)
    assert (known(database).schedule, known(database).seconds) == (first, 1e-5)


def test_times_of_others_and_malformed_ones_count_for_nothing(database):
    first, _ = two_schedules(database)
    timed(database, first, 1e-9, target=replace(TARGET, model="Another CPU"))
    timed(database, first, 1e-9, command="other")
    for seconds in (-1.0, 0.0, "1", None, True):
        timed(database, first, seconds)
    assert times_from_memory(WORK, TARGET, database) == {}
    assert known(database).seconds == pytest.approx(1e-5, rel=1e-3)


def test_a_better_record_that_is_not_timed_yet_counts_by_its_latency(database):
    first, second = two_schedules(database)
    timed(database, second, 5e-5)
    assert known(database).schedule == first


def test_calls_are_made_in_turns_on_other_arrays():
    seen = {"quick": [], "slow": []}

    def quick(name):
        seen["quick"].append(name)

    def slow(name):
        seen["slow"].append(name)
        end = time.thread_time() + 2e-3
        while time.thread_time() < end:
            pass

    found = in_turns({"quick": quick, "slow": slow}, [["a"], ["b"], ["c"]], TARGET)
    assert found["quick"] < found["slow"]
    assert len(seen["quick"]) == len(seen["slow"]) >= 5
    assert set(seen["slow"]) == {"a", "b", "c"}
