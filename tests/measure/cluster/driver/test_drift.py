import pytest

from tilewright.measure.cluster.driver.drift import DRIFT, PIECES, Drift


def usual(workers=("a", "b", "c"), seconds=1e-4):
    drift = Drift()
    for worker in [*workers] * PIECES:
        drift.note(worker, "group", [seconds] * 3)
    return drift


def slow(drift, worker, group, seconds):
    found = drift.note(worker, group, [seconds])
    return found and (pytest.approx(found.times), found.lasting)


def test_a_piece_slower_than_those_of_peers_is_told():
    found = usual().note("a", "group", [1.5e-4, 1.4e-4, 9e-4])
    assert (found.times, found.lasting) == (pytest.approx(1.5), 0)


def test_a_worker_drifts_once_all_of_its_last_pieces_were_slow():
    drift = usual()
    told = [slow(drift, "a", "group", 2e-4) for _ in range(PIECES + 2)]
    assert told == [(2.0, 0)] * (PIECES - 1) + [(2.0, 1), (2.0, 2), (2.0, 3)]
    assert slow(drift, "a", "group", 1e-4) is None
    assert slow(drift, "a", "group", 2e-4) == (2.0, 0)


def test_a_worker_that_comes_near_its_peers_now_and_then_does_not_drift():
    drift = usual()
    for _ in range(20):
        assert drift.note("a", "group", [1e-4, 1.4e-4, 1.5e-4]).lasting == 0


def test_pieces_are_compared_with_those_of_their_group_only():
    drift = usual()
    for worker in ("a", "b") * PIECES:
        assert drift.note(worker, "slow work", [1.5e-4]) is None
    assert slow(drift, "a", "slow work", 1.6e-4) is None
    assert slow(drift, "a", "group", 1.6e-4) == (1.6, 0)


def test_what_is_within_the_usual_is_not():
    assert usual().note("a", "group", [1e-4 * (1 + DRIFT)] * 3) is None
    assert usual().note("a", "group", [0.5e-4] * 3) is None


def test_a_single_slow_sample_is_no_drift():
    assert usual().note("a", "group", [1e-4, 5e-3, 1e-4]) is None


def test_a_worker_without_peers_does_not_drift():
    assert usual(["a"]).note("a", "group", [1.0]) is None
    assert usual(["b"]).note("a", "another group", [1.0]) is None


def test_one_slow_peer_makes_nobody_else_fast_or_slow():
    drift = usual()
    for _ in range(10):
        assert slow(drift, "c", "group", 2e-4) is not None
        assert drift.note("a", "group", [1e-4]) is None
        assert drift.note("b", "group", [1e-4]) is None


def test_a_worker_that_is_as_fast_again_is_told_no_more():
    drift = usual()
    drift.note("a", "group", [2e-4])
    assert drift.note("a", "group", [1e-4]) is None


def test_the_gone_are_no_peers():
    drift = usual(["a", "b"])
    drift.forget("b")
    assert drift.note("a", "group", [1.0]) is None


def test_a_worker_whose_clock_has_yet_to_rise_is_not_told():
    drift = usual(["a", "b"])
    rising = [1.9e-4, 1.4e-4, 1.2e-4, 1.18e-4, 1e-4, 1e-4, 1e-4]
    assert [drift.note("new", "group", [seconds]) for seconds in rising] == [None] * len(rising)
    assert slow(drift, "new", "group", 1.3e-4) == (1.3, 0)


def test_a_worker_that_is_slow_from_its_beginning_is_told_in_the_end():
    drift = usual(["a", "b"])
    told = [slow(drift, "slow", "group", 2e-4) for _ in range(PIECES)]
    assert told == [None] * (PIECES - 1) + [(2.0, 1)]


def test_nothing_is_said_of_nothing():
    assert usual().note("a", "group", []) is None
