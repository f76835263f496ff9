"""Algorithms with weaker bounds on errors are off unless they are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.best import best
from tilewright.scheduler.query import query
from tilewright.scheduler.suites.tune import tune_suite
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.mode import Numerics, as_numerics
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.workload import Workload

TEXT = "conv2d n=1 c=32 h=20 w=20 o=32 r=3 s=3 padding=1 layout=NHWC"
TARGET = detect_target("cpu")


@pytest.fixture
def convolution() -> Workload:
    return workload(TEXT)


def schedule_of(convolution: Workload, template: str) -> Schedule:
    space = space_for(convolution, TARGET)
    rows = space.sample(np.random.default_rng(0), 256)
    return next(s for s in map(space.schedule, rows) if s.template == template)


def put(database: Database, convolution: Workload, template: str, score: float) -> None:
    space, schedule = space_for(convolution, TARGET), schedule_of(convolution, template)
    measurement = Measurement(schedule, Status.OK, score, started_at=score)
    database.record(Record(convolution, TARGET, space.version_of(schedule), measurement))


def test_strict_spaces_have_no_winograd(convolution):
    assert "winograd" in space_for(convolution, TARGET, Numerics.FAST).templates
    strict = space_for(convolution, TARGET, Numerics.STRICT).templates
    assert strict
    assert "winograd" not in strict


def test_an_infinite_pixel_reaches_no_output_that_does_not_see_it(convolution):
    generator = np.random.default_rng(0)
    function = best(convolution, TARGET, None)
    inputs = {
        o.name: generator.standard_normal(o.shape).astype(np.float32) for o in convolution.inputs
    }
    image = inputs[convolution.inputs[0].name]
    image[0, 7, 8, 1] = np.inf
    found = function(*inputs.values())
    hit = ~np.isfinite(found).all(axis=(0, 3))
    expected = np.zeros_like(hit)
    expected[6:9, 7:10] = True
    np.testing.assert_array_equal(hit, expected)
    assert function.numerics is Numerics.STRICT


def test_records_of_weaker_bounds_answer_only_those_who_allow_them(convolution, tmp_path):
    with Database(tmp_path / "db.db") as database:
        put(database, convolution, "winograd", 1.0)
        assert query(convolution, TARGET, database).schedule.template != "winograd"
        put(database, convolution, "windows", 2.0)
        strict, fast = (query(convolution, TARGET, database, numerics=n) for n in Numerics)
    assert (strict.schedule.template, strict.latency) == ("windows", 2.0)
    assert (fast.schedule.template, fast.latency) == ("winograd", 1.0)
    assert strict.to_json()["numerics"] == "strict"
    assert fast.to_json()["numerics"] == "fast"


@pytest.mark.parametrize("numerics", Numerics)
def test_tuning_measures_what_is_allowed(convolution, tmp_path, numerics):
    path = tmp_path / "db.db"
    tune(convolution, TARGET, path, trials=12, seconds=60, numerics=numerics)
    with Database(path) as database:
        templates = {r.schedule.template for r in database.records(convolution, TARGET)}
        (run,) = database.runs()
    assert run.configuration["numerics"] == numerics
    assert ("winograd" in templates) == (numerics is Numerics.FAST)


@pytest.mark.parametrize("call", [query, best, tune, tune_suite])
def test_an_unknown_mode_is_refused(call, convolution, tmp_path):
    what = "bert-base" if call is tune_suite else convolution
    with pytest.raises(InputError, match=r"^numerics='exact'; allowed: strict, fast$"):
        call(what, TARGET, tmp_path / "db.db", numerics="exact")
    assert not (tmp_path / "db.db").exists()


def test_the_modes_by_name():
    assert [as_numerics(str(n)) for n in Numerics] == list(Numerics)
