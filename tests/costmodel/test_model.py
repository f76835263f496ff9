from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tilewright.costmodel.model import LEAST_ROWS, XGBoostModel
from tilewright.costmodel.testing.cost_model import CostModelContract
from tilewright.costmodel.testing.toys import examples, points, product, toy_space, true_latency
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.testing.targets import made_up_cpu


def new_model() -> XGBoostModel:
    return XGBoostModel(space_for=toy_space)


class TestXGBoostModel(CostModelContract):
    least_correlation = 0.9

    def make(self):
        return new_model()

    def load(self, path):
        return XGBoostModel.load(path, space_for=toy_space)


@pytest.fixture
def space():
    return toy_space(product(), made_up_cpu())


def test_failures_are_predicted_worse_than_any_success(space):
    known = [
        e if e.schedule["pack"] else type(e)(e.workload, e.target, e.schedule, None)
        for e in examples(space, points(space, 200))
    ]
    model = new_model()
    model.fit(known)
    rows = points(space, 400, seed=1)
    packed = space.decision_columns(rows)["tile.pack"] > 0
    score, _ = model.predict(space, rows)
    assert abs(score[~packed].mean()) < 0.05
    assert score[packed].mean() > 0.2


def test_uncertainty_is_of_the_size_of_the_error(space):
    model = new_model()
    model.fit(examples(space, points(space, 60)))
    rows = points(space, 3000, seed=1)
    latency = true_latency(space, rows)
    score, uncertainty = model.predict(space, rows)
    error = np.sqrt(np.mean((score - latency.min() / latency) ** 2))
    assert 0.3 < np.sqrt(np.mean(uncertainty**2)) / error < 3.0


def test_what_one_shape_taught_ranks_another():
    here, there = (toy_space(product(m=m), made_up_cpu()) for m in (512, 384))
    model = new_model()
    model.fit(examples(here, points(here, 300)))
    rows = points(there, 500, seed=1)
    score, _ = model.predict(there, rows)
    ranks = [np.argsort(np.argsort(v)) for v in (score, 1 / true_latency(there, rows))]
    assert np.corrcoef(*ranks)[0, 1] > 0.85


def test_labels_are_relative_to_the_best_of_each_workload():
    spaces = [toy_space(product(m=m), made_up_cpu()) for m in (64, 2048)]
    model = new_model()
    model.fit([e for space in spaces for e in examples(space, points(space, 150))])
    for space in spaces:
        assert 0.8 < model.predict(space, points(space, 150))[0].max() < 1.2


def test_schedules_no_longer_in_the_space_are_skipped_and_counted(space):
    known = examples(space, points(space, 20))
    foreign = [Schedule("gone", ()), Schedule("tile", (("rows", 16),))]
    outside = dict(known[0].schedule.decisions) | {"rows": 16, "vectors": 4}
    foreign.append(Schedule("tile", tuple(outside.items())))  # breaks a rule
    model = new_model()
    model.fit(known + [type(known[0])(space.workload, space.target, s, 1e-3) for s in foreign])
    assert model.skipped == 3
    assert model.trained_on == {(str(space.workload), space.target.fingerprint): len(known)}


def test_the_roofline_answers_until_there_are_rows_enough(space):
    few, enough = new_model(), new_model()
    known = examples(space, points(space, 50))
    few.fit(known[: LEAST_ROWS - 1])
    enough.fit(known[:LEAST_ROWS])
    rows = points(space, 30, seed=1)
    unlearned = new_model().predict(space, rows)[0]
    np.testing.assert_array_equal(few.predict(space, rows)[0], unlearned)
    assert not np.array_equal(enough.predict(space, rows)[0], unlearned)


def test_an_untrained_model_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="nothing to save"):
        new_model().save(tmp_path / "model.json")


def test_importing_the_package_loads_no_xgboost():
    code = (
        "import sys, tilewright.costmodel.model, tilewright.costmodel.evaluating.evaluation;"
        "heavy = {'xgboost', 'scipy', 'torch', 'pandas', 'sqlalchemy', 'importlib.metadata'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
