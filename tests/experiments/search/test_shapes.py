"""Searches of one shape that begin with logs of others."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.search import shapes
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.replay.recording import Outcome, recording
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.testing.targets import made_up_cpu


def drawn(text: str, count: int):
    """A space, and random schedules with their seconds on a machine that likes traffic, which
    nobody would guess."""
    space = space_for(workload(text), made_up_cpu())
    rows = space.sample(np.random.default_rng(0), count)
    quantities = space.quantities(rows)
    seconds = 1e6 / (quantities["register_bytes"] + quantities["near_bytes"])
    return space, dict(zip(map(space.schedule, rows), seconds.tolist(), strict=True))


@pytest.fixture
def here():
    space, known = drawn("matmul m=64 n=256 k=256", 400)
    outcomes = {schedule: Outcome(seconds) for schedule, seconds in known.items()}
    return recording("here", space.templates.values(), outcomes)


def logs(path, text: str):
    space, known = drawn(text, 64)
    with Database(path / "tuning.db") as database:
        for schedule, seconds in known.items():
            timing = {"samples": (seconds,), "started_at": 1.0}
            measurement = Measurement(schedule, Status.OK, seconds, **timing)
            version = space.version_of(schedule)
            database.record(Record(space.workload, space.target, version, measurement))
        database.export_jsonl(path / "logs.jsonl")
    return path / "logs.jsonl"


def test_logs_of_another_shape_begin_the_search(here, tmp_path, monkeypatch):
    monkeypatch.setattr(shapes, "TRIALS", (8, 16))
    known = shapes.of_other_shapes(here, logs(tmp_path, "matmul m=64 n=256 k=512"))
    assert known.starters
    cold, warm = shapes.regrets(here, known, seed=0)
    assert warm[0] < cold[0]
    assert cold[0] >= cold[1] >= 0
    assert warm[0] >= warm[1] >= 0


def test_logs_of_the_shape_itself_are_refused(here, tmp_path):
    with pytest.raises(InputError, match="m=64 n=256 k=256"):
        shapes.of_other_shapes(here, logs(tmp_path, "matmul m=64 n=256 k=256"))
