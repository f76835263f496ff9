"""Which schedules fail, learned apart from how fast the others are."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.model import XGBoostModel
from tilewright.costmodel.testing.toys import points, product, toy_space, true_latency
from tilewright.costmodel.validity import learn_validity, validity
from tilewright.spaces.testing.targets import made_up_cpu

MATRIX = np.random.default_rng(0).uniform(size=(200, 3)).astype(np.float32)


def test_what_fails_is_told_apart() -> None:
    ran = MATRIX[:, 0] + 0.2 * MATRIX[:, 1] < 0.7
    likely = validity(learn_validity(MATRIX[:100], ran[:100], 0, 1), MATRIX[100:])
    assert ((likely > 0.5) == ran[100:]).mean() > 0.9
    assert likely.dtype == np.float64
    assert ((likely > 0) & (likely < 1)).all()


@pytest.mark.parametrize("ran", [np.ones(200, dtype=bool), np.zeros(200, dtype=bool)])
def test_nothing_is_learned_of_one_kind(ran) -> None:
    assert learn_validity(MATRIX, ran, 0, 1) is None


def test_failures_do_not_change_how_fast_the_others_are_thought() -> None:
    """Failures at random: what ran is ranked as if there had been none."""
    space = toy_space(product(), made_up_cpu())
    rows, asked = points(space, 300), points(space, 500, seed=1)
    latency, truth = true_latency(space, rows), 1 / true_latency(space, asked)
    failing = np.random.default_rng(0).random(len(rows)) < 0.4
    ranks = []
    for known in (Group(space, rows[~failing], latency[~failing]), None):
        model = XGBoostModel(space_for=toy_space)
        group = known or Group(space, rows, np.where(failing, np.nan, latency))
        model.fit_groups([group])
        assert (model.trained.validity is None) == (known is not None)
        ranks.append(np.argsort(np.argsort(model.predict(space, asked)[0])))
    true_ranks = np.argsort(np.argsort(truth))
    without, among = (np.corrcoef(rank, true_ranks)[0, 1] for rank in ranks)
    assert among > without - 0.1


def test_a_model_says_nothing_unseen_of_failures() -> None:
    space = toy_space(product(), made_up_cpu())
    rows = points(space, 100)
    latency = np.where(np.arange(len(rows)) % 3 == 0, np.nan, true_latency(space, rows))
    model = XGBoostModel(space_for=toy_space)
    model.fit_groups([Group(space, rows, latency)])
    assert np.isnan(model.unseen[np.isnan(latency)]).all()
    assert np.isfinite(model.unseen).any()
