"""A Gaussian process over the decisions of a space."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.predictors.gaussian_process import (
    FLOOR,
    ROWS_AT_ONCE,
    GaussianProcess,
    likeliest,
)
from tilewright.costmodel.testing.toys import TileTemplate, points, product, toy_space, true_latency
from tilewright.spaces.space import Space
from tilewright.spaces.template import Decision
from tilewright.spaces.testing.targets import made_up_cpu


@pytest.fixture
def space():
    return toy_space(product(), made_up_cpu())


def scores(space, rows):
    latency = true_latency(space, rows)
    return latency.min() / latency


def test_what_is_unseen_is_what_the_others_alone_say(space):
    rows = points(space, 40)
    known = scores(space, rows)
    process = GaussianProcess(space, rows, known)
    place = coordinates(rows)
    rough = np.mean(known + FLOOR) / (known + FLOOR)
    weights, noise = likeliest(place, (known - known.mean()) / known.std(), rough)
    smooth = np.exp(-np.abs((place[:, None] - place[None]) * weights).sum(axis=2))
    for i in (0, 7, len(rows) - 1):
        rest = np.delete(np.arange(len(rows)), i)
        noisy = smooth[np.ix_(rest, rest)] + noise * np.diag(rough[rest])
        said = smooth[i, rest] @ np.linalg.solve(noisy, known[rest] - known.mean())
        assert process.unseen[i] == pytest.approx(known.mean() + said, abs=1e-4)


def coordinates(rows):
    """Those of the toy space: sizes by their logarithms and odd parts, a name by each of two."""
    log = np.log2
    tile = log(np.array([2, 3, 5, 7, 9, 13, 17]) / 2) / log(8.5)
    vectors = log(np.array([2, 3, 4, 5]) / 2) / log(2.5)
    block = log(np.array([33, 65, 129, 257, 513]) / 33) / log(513 / 33)
    unroll = log(np.array([2, 3, 5]) / 2) / log(2.5)
    odd = np.array([0, 0, 0, 1, 0, 1, 0]), np.array([0, 0, 1, 0])
    scales = [tile, odd[0], vectors, odd[1], block, unroll, *np.eye(2), np.array([0, 1])]
    columns = [1, 1, 2, 2, 3, 4, 5, 5, 6]
    return np.stack([s[rows[:, c]] for s, c in zip(scales, columns, strict=True)], axis=1)


def test_it_ranks_others(space):
    rows, others = points(space, 60), points(space, 200, seed=1)
    said = GaussianProcess(space, rows, scores(space, rows)).predict(others)
    assert np.corrcoef(said, scores(space, others))[0, 1] > 0.7


def test_rows_of_all_parts_are_judged_alone(space):
    known = points(space, 60)
    process = GaussianProcess(space, known, scores(space, known))
    rows = np.resize(points(space, 200, seed=1), (2 * ROWS_AT_ONCE + 3, space.width))
    np.testing.assert_allclose(process.predict(rows)[::-1], process.predict(rows[::-1]))


def test_decisions_that_change_nothing_count_for_little():
    generator = np.random.default_rng(0)
    place = generator.integers(0, 5, (100, 4)) / 4
    outcomes = place[:, 0] + generator.normal(0, 0.05, 100)
    weights, _ = likeliest(place, (outcomes - outcomes.mean()) / outcomes.std(), np.ones(100))
    assert weights[0] > 4 * weights[1:].max()


def test_noise_is_told_from_what_is_known():
    generator = np.random.default_rng(0)
    place = generator.integers(0, 5, (100, 3)) / 4
    plain = place[:, 0] - place[:, 1] ** 2
    noisy = plain + generator.normal(0, plain.std(), 100)
    found = [likeliest(place, (y - y.mean()) / y.std(), np.ones(100))[1] for y in (plain, noisy)]
    assert found[1] > 5 * found[0]


def test_outcomes_that_are_all_the_same_are_believed(space):
    rows = points(space, 20)
    said = GaussianProcess(space, rows, np.full(len(rows), 0.5)).predict(rows)
    np.testing.assert_allclose(said, 0.5, atol=1e-5)


class HugeTemplate(TileTemplate):
    """Its last decision has numbers that no float tells apart."""

    decisions = (*TileTemplate.decisions, Decision("huge", (2**62, 2**62 + 1)))


def test_numbers_too_large_to_be_told_apart_leave_the_rest_as_it_is():
    work, machine = product(), made_up_cpu()
    space = Space(work, machine, [HugeTemplate(work, machine)])
    rows = points(space, 60)
    said = GaussianProcess(space, rows, scores(space, rows)).predict(rows)
    assert np.corrcoef(said, scores(space, rows))[0, 1] > 0.7
