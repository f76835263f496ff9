"""Regrets of dispatch tables: how they are summed up, and that committed results add up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.dispatch.__main__ import HELD_OUT, WEIGHTS, held_out_shares, in_turns, summary

RESULTS = sorted((Path(__file__).parents[2] / "experiments/dispatch/results").glob("*.json"))


def test_shares_of_held_out_sizes_are_those_of_their_ranges():
    shares = held_out_shares()
    assert tuple(shares) == HELD_OUT
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[1] == pytest.approx(0.3)
    assert sum(share for size, share in shares.items() if 2 <= size <= 8) == pytest.approx(0.3)


def test_the_summary_has_losses_and_gains():
    rows = [{"m": m, "ratio": ratio} for m, ratio in ((1, 0.9), (2, 1.5), (100, 1.0), (300, 1.0))]
    found = summary(rows)
    assert found["mean"] == pytest.approx(0.1)
    assert found["mean_of_profile"] == pytest.approx(-0.3 * 0.1 + 0.3 * 0.5)
    assert found["mean_of_losses"] == pytest.approx(0.5 / 4)
    assert (found["worst"], found["worst_at"]) == (pytest.approx(0.5), 2)


def test_both_are_called_in_turns_with_equal_weights():
    called = []
    seconds, _ = in_turns(
        lambda n: called.append(("one", n)), lambda n: called.append(("other", n))
    )
    assert seconds >= 0
    names = [name for name, _ in called]
    assert {n for name, n in called if name == "one"} == set(range(WEIGHTS))
    assert names[:4] in (["one", "other", "other", "one"], ["other", "one", "one", "other"])
    assert names.count("one") == names.count("other") >= 8


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_committed_results_add_up(path):
    results = json.loads(path.read_text())
    assert results["measured"] == pytest.approx(summary(results["rows"]))
