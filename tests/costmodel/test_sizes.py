"""What is expected of sizes that are no powers of two."""

from __future__ import annotations

import numpy as np
import pytest

from tests.scheduler.replay.toys import hilly
from tilewright.costmodel.sizes import REST, evenness, is_size, odd_part
from tilewright.spaces.schedule import Schedule


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1, 2, 4), True), ((1, 2), False), ((0, 1, 2), False), ((1.0, 2.0, 4.0), False)],
)
def test_sizes_are_positive_whole_numbers_and_three_at_least(values, expected):
    assert is_size(values) == expected


def test_the_odd_part_has_no_factor_of_two():
    assert odd_part(np.array([1, 2, 3, 64, 208])).tolist() == [1, 1, 3, 1, 13]


def test_powers_of_two_lose_nothing_and_others_the_more_the_larger_they_are():
    space = hilly().space
    sizes = [16, 256, 48, 240]
    schedules = [Schedule("recorded", (("x", x), ("y", 0), ("z", 1))) for x in sizes]
    kept = evenness(space, space.rows(schedules))
    expected = [1.0, 1.0, 1.0 - REST * np.log2(48) / 8, 1.0 - REST * np.log2(240) / 8]
    np.testing.assert_allclose(kept, expected)
    assert evenness(space, space.rows([])).shape == (0,)
