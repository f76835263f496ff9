"""What samples say of a latency, and how far that can be trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from measure.estimates import RIVALS, latency, over_rival, pooled, rival_samples
from measure.records.measurement import Measurement
from measure.records.plausibility import why_implausible
from measure.testing.made_up import attempt, measured
from measure.timing import steady_score, usual_score

ROUNDS = 25


def comparison(usual: float, seed: int, clock: str = "cpu", **rivals: float) -> Measurement:
    """A comparison in which the machine let a kernel take about ``usual`` seconds, and libraries
    so many times as long."""
    shape = 1 + 0.01 * np.random.default_rng(seed).random(ROUNDS)
    samples = tuple(map(float, usual * shape))
    theirs = {name: [factor * s for s in samples] for name, factor in rivals.items()}
    made = measured(1, usual, "final")
    info = {RIVALS: theirs} if theirs else {}
    return replace(made, clock=clock, samples=samples, score=usual_score(samples), info=info)


BUSY = [3.351e-3, 3.223e-3, 3.019e-3, 3.639e-3, 3.835e-3]


@pytest.mark.parametrize("clock", ["cpu", "wall", "device"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_slow_minute_at_the_end_does_not_decide(clock: str, order: int) -> None:
    comparisons = [comparison(usual, i, clock) for i, usual in enumerate(BUSY[::order])]
    made = pooled(comparisons)
    assert made.score is not None
    assert made.score < sorted(BUSY)[2] * 1.01, "half of the comparisons were slower"
    assert len(made.samples) == ROUNDS * len(BUSY)
    assert (made.schedule, made.started_at) == (
        comparisons[-1].schedule,
        comparisons[-1].started_at,
    )
    assert why_implausible(attempt(made)) is None
    found = latency(made)
    assert found is not None
    assert found.value == made.score
    assert min(made.samples) <= found.low <= found.value <= found.high <= max(made.samples)


def test_one_comparison_is_its_own() -> None:
    made = comparison(1e-3, 0)
    assert pooled([made]) is made


def test_what_has_a_score_alone_counts_by_it() -> None:
    bare = [replace(measured(1, score, "final"), samples=()) for score in (3.0, 1.0, 2.0)]
    assert pooled(bare).score == 1.5


def test_a_steady_machine_has_a_narrow_interval_and_a_busy_one_a_wide_one() -> None:
    steady = latency(pooled([comparison(3e-3, i) for i in range(5)]))
    busy = latency(pooled([comparison(usual, i) for i, usual in enumerate(BUSY)]))
    assert steady is not None
    assert busy is not None
    assert steady.high / steady.low < 1.01 < busy.high / busy.low


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    generator, held = np.random.default_rng(0), 0
    truth = float(np.quantile(generator.lognormal(0, 0.1, 200_000), 0.5))
    for _ in range(200):
        samples = tuple(map(float, generator.lognormal(0, 0.1, 100)))
        made = replace(measured(1, 1.0), clock="device", samples=samples)
        found = latency(replace(made, score=steady_score(samples)))
        assert found is not None
        held += found.low <= truth <= found.high
    assert 170 <= held <= 198


def test_a_ratio_is_of_the_same_seconds_of_the_machine() -> None:
    """Both are slow together, so that their ratio is known far better than either latency."""
    made = pooled([comparison(usual, i, numpy=1.5) for i, usual in enumerate(BUSY)])
    ratio = over_rival(made, "numpy")
    own = latency(made)
    assert ratio is not None
    assert own is not None
    assert ratio.value == pytest.approx(1.5)
    assert ratio.high / ratio.low < 1.001 < own.high / own.low
    assert over_rival(made, "torch") is None


def test_a_rival_that_was_slow_for_one_comparison_is_not_called_slow() -> None:
    comparisons = [comparison(1e-3, i, numpy=45.0 if i == 1 else 1.1) for i in range(5)]
    ratio = over_rival(pooled(comparisons), "numpy")
    assert ratio is not None
    assert ratio.value == pytest.approx(1.1, rel=0.02)


def test_rivals_may_be_sampled_less_often() -> None:
    made = comparison(1e-3, 0, numpy=2.0)
    made.info[RIVALS]["numpy"] = made.info[RIVALS]["numpy"][:7]
    ratio = over_rival(made, "numpy")
    assert ratio is not None
    assert ratio.low <= ratio.value <= ratio.high
    assert ratio.value == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize(
    "rivals", [None, [], {"numpy": 1.0}, {"numpy": ["1"]}, {"numpy": [-1.0]}, {"numpy": []}]
)
def test_what_a_stranger_says_of_rivals_is_left_out(rivals: object) -> None:
    made = replace(comparison(1e-3, 0), info={RIVALS: rivals})
    assert rival_samples(made, "numpy") == ()
    assert over_rival(made, "numpy") is None


def test_no_samples_have_no_interval() -> None:
    assert latency(replace(measured(1, 1.0), samples=())) is None
    assert latency(replace(measured(1, 1.0), samples=(2.0, 3.0))) is None
