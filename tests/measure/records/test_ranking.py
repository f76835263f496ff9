"""Which attempts may win, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.measure.records import ranking
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.ranking import FINAL, HANDICAP, PASSED_OVER, SEARCH, Ranking, rank
from tilewright.measure.testing.made_up import histories, measured

attempts = histories.map(lambda history: [measurement for measurement, _ in history])


def best(known: list[Measurement]) -> Measurement | None:
    return Ranking(known).best


def standing(known: list[Measurement]) -> list[tuple[float, Measurement]]:
    return Ranking(known).standing


def plainly(known: Sequence[Measurement]) -> list[tuple[float, Measurement]]:
    """The rule once more, from scratch: what may win, best first."""
    known = [attempt for attempt in known if not attempt.lost]
    compared = [i for i, attempt in enumerate(known) if attempt.ok and attempt.round == FINAL]
    found = []
    for place, attempt in enumerate(known):
        later = [m.round for m in known[place + 1 :] if m.schedule == attempt.schedule]
        if attempt.ok and attempt.round not in later and {*later} <= {SEARCH}:
            found.append((rank(attempt, place < max(compared, default=-1)), attempt))
    return sorted(found, key=itemgetter(0))


@given(known=attempts, more=attempts, false=st.lists(st.integers(0, 24)))
def test_a_ranking_that_grows_is_the_plain_one_at_every_step(known, more, false):
    found = Ranking()
    for i, attempt in enumerate(known):
        found.add(attempt)
        expected = plainly(known[: i + 1])
        assert found.best == (expected[0][1] if expected else None)
        assert found.standing == expected
        assert len(found) == len({attempt.schedule for _, attempt in expected})
    withdrawn = [known[i] for i in false if i < len(known)]
    found.withdraw(withdrawn)
    left = [attempt for attempt in known if attempt not in withdrawn]
    for i, attempt in enumerate(more):
        assert found.standing == plainly([*left, *more[:i]])
        found.add(attempt)
    expected = plainly([*left, *more])
    assert found.best == (expected[0][1] if expected else None)


@given(scores=st.permutations([1.0 + i / 64 for i in range(40)]), final=st.integers(0, 39))
def test_of_many_schedules_the_best_are_kept(scores, final):
    every = [measured(i, s, FINAL if i == final else "search") for i, s in enumerate(scores)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "REMEMBERED", 4)
        found = Ranking()
        for i, attempt in enumerate(every):
            found.add(attempt)
            expected = plainly(every[: i + 1])
            assert len(found) <= 8
            assert found.best == expected[0][1]
            assert found.standing[:4] == expected[:4]


@given(known=attempts)
def test_only_what_is_right_may_win_and_each_schedule_once_a_round(known):
    found = [measurement for _, measurement in standing(known)]
    assert all(measurement.ok for measurement in found)
    assert len({(m.schedule, m.round) for m in found}) == len(found)


@given(known=attempts, where=st.integers(0, 12))
def test_what_the_machine_lost_changes_nothing(known, where):
    lost = [m for m in known if m.lost]
    assert standing([m for m in known if not m.lost]) == standing(known)
    assert standing([*known[:where], *lost, *known[where:]]) == standing(known)


@given(known=attempts, scores=st.lists(st.floats(1.0, 2.0), min_size=1, max_size=4))
def test_who_wins_a_comparison_is_beaten_only_by_one_that_was_faster_or_far_faster(known, scores):
    comparison = [measured(i, score, FINAL) for i, score in enumerate(scores)]
    winner = best([*known, *comparison])
    assert winner is not None
    assert winner.score is not None
    least = min(scores)
    if winner.round == FINAL:
        assert winner.score <= least
    else:
        assert winner.score * PASSED_OVER <= least
        assert winner.schedule not in {m.schedule for m in comparison}


@given(known=attempts, score=st.floats(1.0, 4.0))
def test_a_search_wins_if_it_is_ahead_of_all_by_the_handicap(known, score):
    newest = measured(99, score)
    before = [r for r, _ in standing(known)]
    assert (best([*known, newest]) == newest) == (rank(newest) < min(before, default=9.0))
    assert rank(newest) == score * HANDICAP


@given(known=attempts)
def test_ranks_follow_from_the_round_alone(known):
    for ranked, measurement in standing(known):
        times = ranked / measurement.score
        assert times in {1.0} if measurement.round == FINAL else abs(times - 1.0) > 0.09


def test_a_failure_withdraws_what_was_known_of_its_schedule():
    wrong = replace(measured(1, 1.0), status=Status.ERROR, score=None)
    assert best([measured(1, 1.0), measured(2, 3.0), wrong]) == measured(2, 3.0)
    assert best([measured(1, 1.0, FINAL), wrong]) == measured(1, 1.0, FINAL)
    assert best([measured(1, 1.0), replace(wrong, round=FINAL)]) is None
