"""What a model has learned of a workload's trials."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.scheduler.report.made_up import of_records, record
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.report.contributions import MOST_FEATURES, contributions
from tilewright.scheduler.report.material import read_materials
from tilewright.scheduler.report.pages.page import MOST_MODELS, report_page
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

WORK = workload("matmul", m=256, n=256, k=256)


def trials(count: int) -> list[Record]:
    """Records whose latency is a matter of the tile's rows alone."""
    target = detect_target("cpu")
    assert isinstance(target, CpuTarget)
    target = dataclasses.replace(target, threads=1, cores=1)
    space = space_for(WORK, target)
    found = []
    for row in np.unique(space.sample(np.random.default_rng(0), count), axis=0):
        schedule = space.schedule(row)
        seconds = 1e-2 / int(schedule.values["tile_rows"])
        measured = Measurement(schedule, Status.OK, seconds, (seconds,), started_at=1e9)
        found.append(Record(WORK, target, space.version_of(schedule), measured))
    return found


def material_of(folder, records):
    with Database(of_records(folder / "db", records)) as database:
        return read_materials(database)


def test_the_feature_that_decides_comes_first(tmp_path):
    (material,) = material_of(tmp_path, trials(200))
    figure = contributions(material)
    (bars,) = figure.series
    assert 0 < len(bars.x) <= MOST_FEATURES
    assert list(bars.x) == sorted(bars.x, reverse=True)
    names = figure.y.names
    assert any("tile_rows" in name for name in names[:5]), names
    assert "fitted to" in figure.caption
    assert figure.title in report_page([material], "db")


def test_too_few_trials_and_unknown_templates_have_no_model(tmp_path):
    (few,) = material_of(tmp_path, trials(4))
    (unknown,) = material_of(tmp_path / "db", [record(n, 1e-3 + n * 1e-4) for n in range(40)])
    for material in (few, unknown):
        figure = contributions(material)
        assert figure.count == 0
        assert "too few" in figure.caption


def test_a_page_of_many_workloads_fits_no_model(tmp_path):
    materials = material_of(tmp_path, trials(60))
    title = contributions(materials[0]).title
    assert title in report_page(materials * MOST_MODELS, "db")
    assert title not in report_page(materials * (MOST_MODELS + 1), "db")
