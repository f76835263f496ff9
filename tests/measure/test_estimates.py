"""What samples say of a latency, and how far that can be trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.measure.busy import WAITED
from tilewright.measure.estimates import (
    RIVALS,
    latency,
    over_rival,
    pooled,
    quantile,
    rival_samples,
    rival_seconds,
    rivals_info,
    statistic,
)
from tilewright.measure.records.measurement import Measurement
from tilewright.measure.records.plausibility import why_implausible
from tilewright.measure.testing.made_up import attempt, measured
from tilewright.measure.timing import steady_score

ROUNDS = 25


def comparison(usual: float, seed: int, clock: str = "cpu", **rivals: float) -> Measurement:
    """A comparison in which the machine let a kernel take about ``usual`` seconds, and libraries
    so many times as long."""
    shape = 1 + 0.01 * np.random.default_rng(seed).random(ROUNDS)
    samples = tuple(map(float, usual * shape))
    theirs = {name: [factor * s for s in samples] for name, factor in rivals.items()}
    made, info = measured(1, usual, "final"), rivals_info(theirs, samples)
    made = replace(made, clock=clock, samples=samples, info=info)
    return replace(made, score=statistic(made)(samples))


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
    made = replace(
        made, info=rivals_info({"numpy": rival_samples(made, "numpy")[0][:7]}, made.samples)
    )
    ratio = over_rival(made, "numpy")
    assert ratio is not None
    assert ratio.low <= ratio.value <= ratio.high
    assert ratio.value == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize(
    "told",
    [
        None,
        1.0,
        ["1"],
        {},
        {"samples": [1.0]},
        *({"samples": [t], "beside": [1.0]} for t in (-1.0, "1", 0.0, float("nan"), True)),
    ],
)
def test_what_a_stranger_says_of_rivals_is_left_out(told: object) -> None:
    for info in ({RIVALS: told}, {RIVALS: {"numpy": told}}):
        made = replace(comparison(1e-3, 0), info=info)
        assert over_rival(made, "numpy") is None
        assert over_rival(pooled([made, made]), "numpy") is None


def test_rivals_of_some_comparisons_are_compared_with_the_same_rounds() -> None:
    """Here the machine was slower without them."""
    alone = [comparison(9e-3, i) for i in range(3)]
    ratio = over_rival(pooled([*alone, comparison(3e-3, 3, numpy=1.2)]), "numpy")
    assert ratio is not None
    assert ratio.value == pytest.approx(1.2)


@pytest.mark.parametrize(("waited", "said"), [(0.1, True), (0.9, False)])
def test_several_threads_are_not_compared_with_those_of_a_library_on_a_busy_machine(
    waited: float, said: bool
) -> None:
    made = comparison(1e-3, 0, "wall", numpy=1.2)
    made.info[WAITED] = waited
    assert (over_rival(made, "numpy") is not None) == said
    assert rival_seconds(made, "numpy") is not None
    assert over_rival(replace(made, clock="cpu"), "numpy") is not None


def test_no_samples_have_no_interval() -> None:
    assert latency(replace(measured(1, 1.0), samples=())) is None
    assert latency(replace(measured(1, 1.0), samples=(2.0, 3.0))) is None


@pytest.mark.parametrize("share", [0.0, 0.025, 0.25, 0.5, 0.975, 1.0])
@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (3, 25), (4, 2, 6)])
def test_quantiles_are_those_of_numpy(share: float, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).random(shape)
    np.testing.assert_array_equal(quantile(values, share), np.quantile(values, share, axis=-1))
