"""Boosted trees and a Gaussian process, both asked."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.model import LEAST_ROWS, XGBoostModel
from tilewright.costmodel.predictors.blend import MOST_ROWS, Blend, mixed
from tilewright.costmodel.testing.toys import points, product, toy_space, true_latency
from tilewright.spaces.testing.targets import made_up_cpu


@pytest.fixture
def space():
    return toy_space(product(), made_up_cpu())


def learned(space, rows, latency=None):
    model = Blend(XGBoostModel(space_for=lambda workload, target: space))
    known = true_latency(space, rows) if latency is None else latency
    model.fit_groups([Group(space, rows, known)])
    return model


def test_with_few_outcomes_it_is_nearer_the_truth_than_trees(space):
    others = points(space, 300, seed=1)
    truth = 1 / true_latency(space, others)
    model = learned(space, points(space, 40))
    both, trees = (
        np.corrcoef(m.predict(space, others)[0], truth)[0, 1] for m in (model, model.trees)
    )
    assert 1 - both < 0.8 * (1 - trees)


@pytest.mark.parametrize("count", [LEAST_ROWS - 1, MOST_ROWS + 1])
def test_with_too_few_or_too_many_it_says_what_the_trees_say(space, count):
    known = np.resize(points(space, min(count, 300)), (count, space.width))
    model, rows = learned(space, known), points(space, 30, seed=1)
    np.testing.assert_array_equal(model.predict(space, rows), model.trees.predict(space, rows))
    np.testing.assert_array_equal(model.unseen, model.trees.unseen)


def test_it_forgets_the_fit_before(space):
    model, few = learned(space, points(space, 100)), points(space, LEAST_ROWS - 1)
    model.fit_groups([Group(space, few, true_latency(space, few))])
    np.testing.assert_array_equal(model.predict(space, few), model.trees.predict(space, few))


def test_failures_are_expected_near_failures(space):
    rows = points(space, 120)
    latency = true_latency(space, rows)
    latency[rows[:, 2] == 3] = np.nan
    others = points(space, 300, seed=1)
    said, fails = learned(space, rows, latency).predict(space, others)[0], others[:, 2] == 3
    assert said[fails].max() < said[~fails].mean()


def test_it_errs_less_on_what_it_has_not_seen(space):
    rows = points(space, 100)
    score = true_latency(space, rows).min() / true_latency(space, rows)
    model = learned(space, rows)
    known = np.isfinite(model.unseen)
    np.testing.assert_array_equal(known, np.isfinite(model.trees.unseen))
    both, trees = (np.abs(m.unseen - score)[known].mean() for m in (model, model.trees))
    assert both < 0.9 * trees


def test_what_either_knows_to_fail_is_not_expected_of_both():
    np.testing.assert_allclose(
        mixed(np.array([-0.1, 0.25, 0.4]), np.array([0.9, 0.0, 0.9])), [0, 0, 0.6]
    )


def test_none_are_judged(space):
    rows = points(space, 50)
    assert [len(said) for said in learned(space, rows).predict(space, rows[:0])] == [0, 0]
