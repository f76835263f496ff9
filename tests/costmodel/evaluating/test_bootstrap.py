from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.evaluating.bootstrap import LEAST_GROUPS, interval


@pytest.mark.parametrize(("groups", "least"), [(LEAST_GROUPS, 0.9), (8, 0.9), (20, 0.92)])
def test_intervals_hold_the_mean_as_often_as_they_say(groups, least):
    """Of shares between 0 and 1 that lie askew, as accuracies do."""
    generator = np.random.default_rng(0)
    drawn = generator.beta(6, 2, size=(300, groups))
    found = [interval(values) for values in drawn]
    held = np.mean([low <= 0.75 <= high for low, high in found])
    assert least <= held <= 0.99


def test_few_groups_have_no_interval():
    assert interval(np.arange(LEAST_GROUPS - 1.0)) is None


def test_the_same_groups_have_the_same_interval_and_equal_ones_none_between():
    values = np.array([0.8, 0.7, 0.9, 0.6, 0.85])
    assert interval(values) == interval(values)
    assert interval(np.full(6, 0.5)) == (0.5, 0.5)
    low, high = interval(values)
    assert values.min() <= low < values.mean() < high <= values.max()
