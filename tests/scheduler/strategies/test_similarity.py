"""How alike rows of a space are."""

from __future__ import annotations

import numpy as np

from tilewright.scheduler.strategies.similarity import Similarity
from tilewright.scheduler.testing.landscape import hills


def test_the_nearest_is_the_most_alike_of_all_one_by_one():
    space = hills()
    likeness = Similarity(space)
    generator = np.random.default_rng(0)
    pool, known = space.sample(generator, 50), space.sample(generator, 20)
    each = np.array([likeness.to(row, pool) for row in known])
    np.testing.assert_allclose(likeness.nearest(pool, known), each.max(axis=0), atol=1e-6)
    assert 0 <= each.min() < each.max()


def test_a_row_is_most_like_itself_and_nothing_is_like_nothing():
    space = hills()
    likeness = Similarity(space)
    pool = space.sample(np.random.default_rng(0), 20)
    np.testing.assert_allclose(likeness.nearest(pool, pool), 1.0)
    assert (likeness.nearest(pool, pool[:0]) == 0).all()
    assert (likeness.to(pool[0], pool[:1]) == 1).all()


def test_by_steps_sizes_are_the_more_alike_the_fewer_steps_they_are_apart():
    space = hills()
    row = space.sample(np.random.default_rng(0), 1)[0]
    [template] = space.templates.values()
    for column, decision in enumerate(template.decisions, start=1):
        count = len(decision.values)
        rows = np.repeat(row[None], count, axis=0)
        rows[:, column] = np.arange(count)
        loss = 1.0 - Similarity(space, by_steps=True).to(rows[0], rows)
        steps = np.arange(count) if isinstance(decision.values[0], int) else np.arange(count) > 0
        np.testing.assert_allclose(loss, loss.max() * steps / max(steps.max(), 1))
