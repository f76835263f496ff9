"""Many candidates, of which the learned model sees the most promising only."""

from __future__ import annotations

import numpy as np

from tests.scheduler.replay.toys import hilly
from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.costmodel.shortlist import shortlist, shortlisted
from tilewright.costmodel.testing.toys import points, product, toy_space
from tilewright.scheduler.defaults import only
from tilewright.spaces.testing.targets import made_up_cpu

SPACE = toy_space(product(), made_up_cpu())
ROWS = points(SPACE, 400)
DRAFT = AnalyticModel(space_for=toy_space)


class Asked:
    """Prefers what came last, and remembers whom it was asked about."""

    def predict(self, space, population):
        self.rows = population
        return np.arange(len(population), dtype=float), np.ones(len(population))


def test_the_fastest_by_the_roofline_are_listed_in_their_order() -> None:
    latency = DRAFT.latency(SPACE, ROWS)
    found = shortlist(SPACE, ROWS, DRAFT, 50)
    assert len(found) == 50
    assert (np.diff(found) > 0).all()
    assert latency[found].max() <= np.delete(latency, found).min()


def test_few_are_all_listed() -> None:
    assert shortlist(SPACE, ROWS, DRAFT, len(ROWS)).tolist() == list(range(len(ROWS)))
    assert shortlist(SPACE, ROWS[:0], DRAFT).tolist() == []


def test_where_the_roofline_knows_nothing_some_are_taken() -> None:
    space = hilly().space
    rows = space.sample(np.random.default_rng(0), 100)
    unknown = AnalyticModel(space_for=only(space))
    assert np.isnan(unknown.latency(space, rows)).all()
    assert len(shortlist(space, rows, unknown, 10)) == 10


def test_the_model_ranks_the_shortlist_and_sees_nothing_else() -> None:
    model = Asked()
    rows, score = shortlisted(SPACE, ROWS, DRAFT, model, 50)
    listed = ROWS[shortlist(SPACE, ROWS, DRAFT, 50)]
    assert np.array_equal(model.rows, listed)
    assert np.array_equal(rows, listed[::-1])
    assert (np.diff(score) <= 0).all()
