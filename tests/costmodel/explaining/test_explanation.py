from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.explaining.explanation import explain
from tilewright.costmodel.feature_names import describe
from tilewright.costmodel.features import features
from tilewright.costmodel.model import XGBoostModel
from tilewright.costmodel.testing.toys import examples, points, product, toy_space
from tilewright.costmodel.validity import validity
from tilewright.spaces.errors import InputError
from tilewright.spaces.testing.targets import made_up_cpu


@pytest.fixture(scope="module")
def spaces():
    return [toy_space(product(m=m), made_up_cpu()) for m in (512, 384)]


@pytest.fixture(scope="module")
def model(spaces, tmp_path_factory):
    made = XGBoostModel(space_for=toy_space)
    made.fit([e for space in spaces for e in examples(space, points(space, 150), failing=13)])
    path = tmp_path_factory.mktemp("model") / "model.json"
    made.save(path)
    return XGBoostModel.load(path, space_for=toy_space)


def test_contributions_add_up_to_the_prediction_of_what_runs(model, spaces):
    parts = [(space, points(space, 60, seed=1)) for space in spaces]
    found, odds = explain(model, parts)
    runs = validity(model.trained.validity, found.values)
    predicted = np.concatenate([model.predict(*part)[0] for part in parts]) / runs
    assert runs.min() < 0.9
    np.testing.assert_allclose(found.base + found.contributions.sum(axis=1), predicted, atol=1e-4)
    assert found.base == pytest.approx(predicted.mean(), abs=1e-4)
    log_odds = np.log(runs / (1 - runs))
    np.testing.assert_allclose(odds.base + odds.contributions.sum(axis=1), log_odds, atol=1e-3)
    assert found.values.shape == found.contributions.shape == (len(predicted), len(found.names))


def test_what_is_the_same_for_all_contributes_nothing(spaces):
    """What unrolling does depends on the workload here: of one of them, nothing of the workload
    moves a prediction; of both, it does."""
    model = XGBoostModel(space_for=toy_space)
    known = [
        type(e)(e.workload, e.target, e.schedule, float(e.schedule["unroll"]) ** sign)
        for space, sign in zip(spaces, (-1, 1), strict=True)
        for e in examples(space, points(space, 100))
    ]
    model.fit(known)
    parts = [(space, points(space, 60, seed=1)) for space in spaces]
    (one, risks), (both, _) = explain(model, parts[:1]), explain(model, parts)
    assert risks is None  # no schedule failed
    of_workload = [i for i, name in enumerate(one.names) if describe(name).kind == "workload"]
    assert one.importance[of_workload].sum() < 1e-4
    assert both.importance[of_workload].sum() > 0.01


def test_what_decides_comes_first_and_says_which_way(spaces):
    """Latency that depends on one decision alone."""
    space = spaces[0]
    known = [
        type(e)(e.workload, e.target, e.schedule, 1.0 / e.schedule["unroll"])
        for e in examples(space, points(space, 200))
    ]
    model = XGBoostModel(space_for=toy_space)
    model.fit(known)
    found, _ = explain(model, [(space, points(space, 100, seed=1))])
    first = found.order[0]
    assert found.names[first] == "tile.unroll"
    assert found.direction(first) > 0.9
    assert found.importance[first] > 0.8 * found.importance.sum()


def test_what_makes_schedules_fail_comes_first_among_risks(spaces):
    space = spaces[0]
    known = [
        type(e)(e.workload, e.target, e.schedule, None if e.schedule["pack"] else e.latency)
        for e in examples(space, points(space, 200))
    ]
    model = XGBoostModel(space_for=toy_space)
    model.fit(known)
    _, risks = explain(model, [(space, points(space, 100, seed=1))])
    first = risks.names[risks.order[0]]
    assert first in ("tile.pack", "schedule.packing_bytes_per_flop")
    assert risks.direction(risks.order[0]) < -0.9


def test_a_model_without_trees_or_schedules_explains_nothing(model, spaces):
    with pytest.raises(InputError, match="nothing to explain"):
        explain(XGBoostModel(space_for=toy_space), [(spaces[0], points(spaces[0], 5))])
    with pytest.raises(InputError, match="no schedule"):
        explain(model, [(spaces[0], points(spaces[0], 5)[:0])])


def test_every_feature_is_described(spaces):
    named = features(spaces[0], points(spaces[0], 3))
    kinds = {name: describe(name).kind for name in named}
    assert {"schedule", "roofline", "workload", "target", "template", "decision"} == set(
        kinds.values()
    )
    assert kinds["tile.unroll"] == "decision"
    assert all(describe(name).meaning for name in named)
