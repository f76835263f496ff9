"""The choice of an open kernel for each number of rows, by their times."""

from __future__ import annotations

from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from tilewright.scheduler.dispatch.open_ranges import (
    ALIKE,
    best_pair,
    best_ranges,
    fewest_ranges,
    range_seconds,
)
from tilewright.scheduler.dispatch.table import OpenRange
from tilewright.spaces.schedule import Schedule

A, B, C = (Schedule(name, ()) for name in "abc")
SECONDS = st.sampled_from([1.0, 1.02, 1.04, 2.0])


def test_tiles_of_eight_rows_leave_nine_to_twelve_to_others():
    eights, twelves = [1.0] * 9 + [2.0] * 8, [1.5] * 13 + [2.5] * 4
    assert best_ranges({A: eights, B: twelves}) == (
        OpenRange(8, A),
        OpenRange(12, B),
        OpenRange(16, A),
    )


def test_what_is_almost_as_fast_serves_alone():
    assert best_ranges({A: [1, 1, 1.02, 1], B: [1, 1, 1, 1.1]}) == (OpenRange(3, A),)
    assert best_ranges({A: [1, 1, 1.04], B: [1, 1.04, 1]}) == (OpenRange(2, A),)
    assert best_ranges({A: [1, 1, 1.02], B: [1, 1, 1]}) == (OpenRange(2, B),)
    assert best_ranges({}) == ()


def test_a_third_schedule_is_not_used():
    times = {A: [1, 1, 2, 3, 3], B: [1, 2, 1, 3, 3], C: [1, 3, 3, 1, 1]}
    assert best_pair(times) == (A, C)
    assert best_ranges(times) == (OpenRange(2, A), OpenRange(4, C))


@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS), min_size=2, max_size=7))
def test_ranges_are_the_fewest_of_fast_schedules(rows):
    times = {each: [row[place] for row in rows] for place, each in enumerate((A, B, C))}
    ranges = fewest_ranges(times)
    ends = [each.last for each in ranges]
    assert ends == sorted(set(ends))
    assert ends[-1] == len(rows) - 1
    found = range_seconds(ranges, times)
    assert len(found) == len(rows)
    least = [min(row) * (1 + ALIKE) for row in rows]
    assert all(own <= most for own, most in zip(found[1:], least[1:], strict=True))
    allowed = [
        [place for place in range(3) if row[place] <= most]
        for row, most in zip(rows[1:], least[1:], strict=True)
    ]
    changes = (sum(one != other for one, other in pairwise(way)) for way in product(*allowed))
    assert len(ranges) == 1 + min(changes)


def test_without_times_of_a_schedule_there_are_none():
    assert range_seconds((OpenRange(1, A), OpenRange(2, B)), {A: [1, 1, 1]}) == ()
    assert range_seconds((), {}) == ()
