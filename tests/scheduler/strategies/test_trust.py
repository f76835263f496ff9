"""Whom a search believes: its prior, or the model of its own outcomes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.dataset import Group
from tilewright.scheduler.strategies.trust import Forecasts, trust
from tilewright.scheduler.testing.landscape import Guess, hills, trees

GENERATOR = np.random.default_rng(0)
SCORE = GENERATOR.uniform(0.05, 1.0, 64)
NOISE = GENERATOR.uniform(0.05, 1.0, 64)
UNKNOWN = np.full(64, np.nan)
CAUTION = 32.0


def test_without_evidence_the_number_of_outcomes_decides() -> None:
    known = trust(SCORE, SCORE, UNKNOWN, CAUTION)
    assert known.share == pytest.approx(64 / (64 + CAUTION))
    assert trust(SCORE, SCORE, np.zeros(0), CAUTION) == known


def test_a_prior_that_was_right_is_kept_as_it_is() -> None:
    known = trust(SCORE, SCORE, NOISE, CAUTION)
    assert known.slope == pytest.approx(1.0)
    assert known.offset == pytest.approx(0.0)
    assert known.share < 0.1


def test_a_prior_of_another_scale_is_brought_to_that_of_the_outcomes() -> None:
    known = trust(SCORE, 0.5 * SCORE + 0.4, UNKNOWN, CAUTION)
    said, spread = known.prior(0.5 * SCORE + 0.4, np.full(64, 0.1))
    assert np.abs(said - SCORE).mean() < 0.05
    assert spread == pytest.approx(0.1 * known.slope)


@pytest.mark.parametrize("prior", [NOISE, 1.0 - SCORE, np.full(64, 0.5)])
def test_a_prior_that_was_wrong_ranks_nothing_beside_a_model_that_was_right(prior) -> None:
    known = trust(SCORE, prior, SCORE + 0.1 * (NOISE - 0.5), CAUTION)
    said, _ = known.prior(prior, prior)
    mixed = known.mixed(said, SCORE)
    assert known.share > 0.9
    assert np.corrcoef(mixed, SCORE)[0, 1] > 0.99


def test_the_opposite_of_the_truth_comes_out_flat() -> None:
    known = trust(SCORE, 1.0 - SCORE, UNKNOWN, CAUTION)
    assert known.slope < 0.1


def test_one_outcome_proves_nothing() -> None:
    known = trust(np.ones(1), np.array([0.2]), np.zeros(0), CAUTION)
    assert known.slope == 1.0
    assert known.share == pytest.approx(1 / (1 + CAUTION))


class Fickle(Guess):
    """Says another thing each time that it is asked."""

    asked = 0.0

    def predict(self, space, population):
        self.asked += 1.0
        return np.full(len(population), self.asked), np.zeros(len(population))


def test_what_counts_is_what_was_said_before_the_outcome_was_known() -> None:
    space = hills()
    rows = space.sample(np.random.default_rng(0), 3)
    forecasts = Forecasts(space, Fickle())
    forecasts.note([space.schedule(row) for row in rows[:2]])
    forecasts.note([space.schedule(row) for row in rows])
    assert forecasts.of(rows).tolist() == [1.0, 1.0, 2.0]
    assert forecasts.best == 2.0


def test_a_model_is_judged_by_what_it_had_not_seen() -> None:
    """It would be perfect on random outcomes that it has learned by heart."""
    space = hills()
    rows = np.unique(space.sample(np.random.default_rng(0), 128), axis=0)
    latency = np.random.default_rng(1).uniform(1.0, 4.0, len(rows))
    group = Group(space, rows, latency)
    model = trees(space)
    model.fit_groups([group])
    known = np.isfinite(model.unseen)
    assert len(model.unseen) == len(rows)
    assert 0.4 < known.mean() < 0.8
    learned, _ = model.predict(space, rows)
    assert np.corrcoef(learned, group.score)[0, 1] > 0.6
    assert abs(np.corrcoef(model.unseen[known], group.score[known])[0, 1]) < 0.3
