"""The experiment on databases, at a thousandth of its size."""

from __future__ import annotations

import json

import pytest

from experiments.database import figures
from experiments.database.filling import ATTEMPTS, FINALISTS, fill, prepared, shape
from experiments.database.storage import Files
from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import TARGET


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    for name, value in (("ASKED", 9), ("BATCHES", 3), ("NEW_SHAPES", 12)):
        monkeypatch.setattr(figures, name, value)


def test_what_is_generated_is_as_tuners_leave_it(tmp_path):
    location = str(tmp_path / "filled.db")
    tried = ATTEMPTS - len(FINALISTS)
    fill(location, 3 * ATTEMPTS)
    with Database(location, report=pytest.fail) as database:
        assert len({record.key for record in database.records()}) == 3 * ATTEMPTS
        assert [(s.trials, s.failures) for s in database.summaries()] == [(tried, 80)] * 3
        best = [database.best(shape(i), TARGET) for i in range(3)]
    assert {record.schedule for record in best} == {best[0].schedule}
    assert {record.measurement.round for record in best} == {"final"}


def test_figures_of_a_small_database_which_is_filled_once(tmp_path):
    place = Files(tmp_path)
    made = prepared(place, 2 * ATTEMPTS, 1200)
    found = figures.figures(place, made)
    assert prepared(place, 2 * ATTEMPTS, 1200) == made
    assert found["stats"]["measurements"] == 2 * ATTEMPTS
    assert found["import"]["records"] == 1200
    assert found["best"]["count"] == 9
    assert all(found[name]["median"] > 0 for name in ("best", "nearest", "list", "batch"))
    assert json.loads(json.dumps(found)) == found
