"""Exports of our own database as recorded spaces."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.records.jsonl import write_lines
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.replay.formats.exports import export_recordings
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.testing.targets import made_up_cpu

WORKLOAD = workload("matmul m=16 n=4096 k=4096")


@pytest.fixture
def space():
    return space_for(WORKLOAD, made_up_cpu())


@pytest.fixture
def export(space, tmp_path):
    def export(schedules):
        path = tmp_path / "records.jsonl"
        records = [
            Record(
                WORKLOAD,
                space.target,
                space.version_of(schedule),
                Measurement(schedule, Status.OK, 1.0 + i, (1.0 + i,), clock="cpu"),
            )
            for i, schedule in enumerate(schedules)
        ]
        write_lines(path, [], records)
        return path

    return export


def changed(schedule, **values):
    return Schedule(schedule.template, tuple({**schedule.values, **values}.items()))


def some(space):
    return space.schedule(space.sample(np.random.default_rng(0), 1)[0])


def test_numbers_between_those_of_today_are_part_of_the_space(space, export):
    known = changed(some(space), unroll=2)
    finer = changed(known, unroll=3)
    assert finer not in space
    [recording] = export_recordings(export([known, finer]), pytest.fail)
    assert set(recording.outcomes) == {known, finer}
    [template] = recording.space.templates.values()
    unroll = next(d for d in template.decisions if d.name == "unroll")
    assert unroll.values == (2, 3)
    flops = recording.space.quantities(recording.space.rows([known, finer]))["flops"]
    assert np.isfinite(flops).all()


@pytest.mark.parametrize(
    "values", [{"unroll": 5}, {"unroll": 0}, {"pack_left": 2}, {"block_rows": 3}]
)
def test_others_are_left_out(space, export, values):
    known = some(space)
    [recording] = export_recordings(export([known, changed(known, **values)]), pytest.fail)
    assert set(recording.outcomes) == {known}
