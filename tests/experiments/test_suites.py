"""The comparison of the task scheduler with equal shares, on two tiny products."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from experiments.suites.comparison import COMPARISONS, CONTENDERS, GRADIENT, LATER, compare
from experiments.suites.cpu_sets import Processes, everywhere, side_by_side
from experiments.suites.finalists import judged
from experiments.suites.halving import fields, finalists, regret
from experiments.suites.winners import medians, standard_error, weighted_sums
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.spaces.operators import workload

MEMBERS = (
    Member(workload("matmul m=64 n=64 k=64"), 9.0),
    Member(workload("matmul m=8 n=8 k=8")),
)
THREADS_OF_FIVE_CORES = ((0, 8), (1, 9), (2, 10), (3, 11), (4, 12))


@pytest.mark.slow
def test_both_are_run_and_compared():
    heard, known = [], []
    with Processes(everywhere()) as pool:
        report = compare(
            *(pool, Suite("two", MEMBERS), 1, 600.0, 1),
            trials=12,
            side_by_side=True,
            ended=lambda seed, name, run: heard.append((seed, name, run)),
            compared=known.append,
        )
    assert set(report["runs"]) == {*CONTENDERS, LATER}
    assert set(report["ratios"]) == {GRADIENT, LATER}
    assert min(report["ratios"].values()) > 0
    assert set(report["standard_errors"]) == {GRADIENT, LATER}
    assert len(report["compared_s"]) == COMPARISONS
    assert [len(found["compared_s"]) for found in known] == [5, 10, 15, 20, 25]
    assert known[-1] == report
    assert {name: run for _, name, run in heard} == report["runs"]
    for run in report["runs"].values():
        assert run["value_s"] > 0
        assert [task["weight"] for task in run["tasks"]] == [9.0, 1.0]
        assert run["trials"] == sum(task["trials"] for task in run["tasks"])
    assert json.loads(json.dumps(report))["ratios"] == report["ratios"]


def test_the_median_of_all_comparisons_counts_of_who_was_always_right():
    compared = [[{"a": 1.0, "b": 5.0}], [{"a": 2.0}], [{"a": 9.0, "b": 4.0}]]
    assert medians(compared) == [{"a": 2.0}]
    assert weighted_sums(Suite("one", MEMBERS[:1]), ["a"], medians(compared)) == {"a": 18.0}


def test_a_median_of_many_comparisons_is_less_uncertain():
    drawn = np.random.default_rng(0).normal(1.0, 0.01, (4000, 25))
    seen = float(np.std(np.median(drawn, axis=1)))
    assert np.mean([standard_error(row) for row in drawn]) == pytest.approx(seen, rel=0.05)
    assert standard_error([1.0]) is None


def test_who_wins_by_a_lucky_sample_is_regretted():
    """Of three kernels the second is the fastest; the last has one short sample in turn."""
    samples = np.tile(np.array([[1.1], [1.0], [1.2]]), (4, 1, 25))
    samples[:, 2, 7] = 0.9
    found = judged(samples)
    assert found["least"] == {3: pytest.approx(0.2)}
    assert found["lower quartile"] == found["median"] == {3: 0.0}


def test_with_more_finalists_the_fastest_is_among_them():
    times = np.linspace(1.1, 1.0, 30)  # the last is the fastest
    found = judged(np.tile(times[None, :, None], (3, 1, 5)))["median"]
    assert list(found) == [8, 20, 30]
    assert found[8] > found[20] > found[30] == 0.0


def test_runs_side_by_side_share_no_core_and_no_run_has_cores_of_two_caches():
    known = (THREADS_OF_FIVE_CORES, tuple((cpu + 16,) for (cpu, _) in THREADS_OF_FIVE_CORES))
    assert side_by_side(4, 2, known) == [[0, 1], [2, 3], [16, 17], [18, 19]]
    assert side_by_side(2, 5, known) == [[0, 1, 2, 3, 4], [16, 17, 18, 19, 20]]


def test_more_runs_than_there_is_room_for_are_refused():
    with pytest.raises(ValueError, match="room for 2 runs of 2 cores each; needed: 3"):
        side_by_side(3, 2, (THREADS_OF_FIVE_CORES,))


def test_a_process_stays_at_its_place():
    place = everywhere()[0][-1:]
    with Processes([place]) as pool:
        assert pool.submit(os.sched_getaffinity, 0).result() == set(place)


def test_a_process_that_dies_takes_no_other_along():
    with Processes(2 * everywhere()) as pool:
        dying, other = pool.submit(os._exit, 3), pool.submit(sleep_and_say, 1.0)
        assert isinstance(dying.exception(), BrokenProcessPool)
        assert other.result() == 1.0
        assert pool.submit(sleep_and_say, 0.0).result() == 0.0


def sleep_and_say(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def test_who_wins_a_comparison_is_nearer_to_the_best_the_more_measurements_it_has():
    assert list(fields(9, 2)) == [(9, 1), (5, 2), (3, 2), (2, 2)]
    assert list(fields(8, 0)) == [(8, 1), (4, 2), (2, 4)]
    assert [finalists(most, 2) for most in (60, 120)] == [20, 40]
    means = [
        np.mean([regret(count, 2, 0.03, np.random.default_rng(seed)) for seed in range(200)])
        for count in (4, 40)
    ]
    assert means[0] > 2 * means[1] > 0
