from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.explaining.levels import Level, levels, nearest_roof
from tilewright.costmodel.explaining.separation import epsilon_squared, separations
from tilewright.costmodel.roofs.peaks import MeasuredPeaks
from tilewright.costmodel.testing.toys import points, product, toy_space
from tilewright.spaces.testing.targets import made_up_cpu


def test_what_decides_alone_explains_all():
    space = toy_space(product(), made_up_cpu())
    rows = points(space, 300)
    unroll = space.decision_columns(rows)["tile.unroll"]
    latency = 1.0 / unroll
    latency[:7] = np.nan
    found = separations(Group(space, rows, latency))
    first = found[0]
    assert (first.decision, first.value, first.rows) == ("tile.unroll", 4, len(rows) - 7)
    assert first.explained == pytest.approx(1.0)
    assert first.share_of_fastest == 1.0
    assert first.share_of_all == pytest.approx((unroll[7:] == 4).mean())
    assert first.slowdown in (2.0, 4.0)
    assert {each.decision for each in found} <= {
        f"tile.{d.name}" for d in space.templates["tile"].decisions
    }
    assert all(each.explained < 0.1 for each in found[1:])


def test_nothing_is_told_apart_where_nothing_differs():
    space = toy_space(product(), made_up_cpu())
    rows = points(space, 30)
    assert separations(Group(space, rows, np.ones(len(rows)))) == []
    assert separations(Group(space, rows[:1], np.ones(1))) == []


def test_the_share_explained_is_what_sums_of_squares_say():
    group = np.array([0, 0, 0, 2, 2, 1, 1, 1])
    y = np.array([1.0, 1.5, 0.7, 4.0, 4.4, 2.0, 2.2, 1.9])
    parts = [y[group == g] for g in range(3)]
    within = sum(((part - part.mean()) ** 2).sum() for part in parts)
    total = ((y - y.mean()) ** 2).sum()
    expected = (total - within - 2 * within / (8 - 3)) / total
    assert epsilon_squared(group, y) == pytest.approx(expected)


def test_chance_explains_nothing_on_average():
    generator = np.random.default_rng(0)
    found = [
        epsilon_squared(generator.integers(0, 6, 40), generator.standard_normal(40))
        for _ in range(200)
    ]
    assert np.mean(found) < 0.06  # what lies below 0 is cut; uncorrected it would be 0.13


def test_each_level_takes_its_work_over_its_peak():
    space = toy_space(product(), made_up_cpu())
    schedule = space.schedule(points(space, 5)[0])
    quantities = space.quantities(space.rows([schedule]))
    measured = MeasuredPeaks(flops=2e11, main_bandwidth=1e10)
    found = {level.name: level for level in levels(space, schedule, 2e-3, measured)}
    main = found["main memory"]
    assert main.seconds == pytest.approx(quantities["main_bytes"][0] / 1e10)
    assert main.share == pytest.approx(main.seconds / 2e-3)
    arithmetic = found["useful arithmetic"]
    assert (arithmetic.amount, arithmetic.rate) == (2 * 512**3, 2e11)
    assert ("packing" in found) == bool(schedule["pack"])


def test_what_would_take_longer_than_the_latency_is_no_roof():
    shares = {"near": 0.4, "middle": 1.02, "far": 7.2}
    found = [Level(name, "B", 1.0, 1.0, 1.0, share) for name, share in shares.items()]
    nearest = nearest_roof(found)
    assert nearest is not None
    assert nearest.name == "middle"
    assert nearest_roof(found[2:]) is None
