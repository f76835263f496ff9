"""The comparison of losses on recorded spaces."""

from __future__ import annotations

import pytest

from experiments.replay.__main__ import (
    BATCH,
    OBJECTIVES,
    STRATEGIES,
    make_search,
    predict_all,
    search_all,
)
from tests.scheduler.replay.toys import hilly
from tilewright.scheduler.replay.run import replay


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_replays_the_same_for_the_same_seed(strategy):
    recording = hilly()
    first, second = (
        replay(recording, make_search(strategy, recording, 1), 3 * BATCH, BATCH) for _ in range(2)
    )
    assert list(first.seconds) == list(second.seconds)


def test_regret_of_random_draws():
    [result] = search_all(hilly(), ["random"], seeds=2)
    regrets = [result[f"regret_{trials}"] for trials in (32, 64, 128, 256)]
    assert regrets == sorted(regrets, reverse=True)
    assert regrets[0] > 0


def test_models_rank_what_they_have_not_seen(monkeypatch):
    monkeypatch.setattr("experiments.replay.__main__.TRAINED_ON", (64,))
    results = list(predict_all(hilly(), seeds=1))
    assert [result["objective"] for result in results] == list(OBJECTIVES)
    assert all(result["pairwise"] > 0.6 for result in results)
