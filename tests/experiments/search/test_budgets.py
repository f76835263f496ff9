"""What is said of searches of several seconds on a GPU, without one."""

from __future__ import annotations

import pytest

from experiments.search.budgets import summary


def test_a_run_is_held_to_the_longest_cold_one_and_to_cublas():
    rows = [
        {"median_s": {"60 s": 4.0, "600 s": 2.0, "15 s, warm": 1.0, "cublas": 2.0}},
        {"median_s": {"60 s": 1.0, "600 s": 1.0, "cublas": 3.0}},
    ]
    found = summary(rows)
    assert found["60 s"]["cases"] == 2
    assert found["60 s"]["of the longest"] == {"geomean": pytest.approx(0.5**0.5), "least": 0.5}
    assert found["600 s"]["of the longest"] == {"geomean": 1.0, "least": 1.0}
    assert found["15 s, warm"]["cases"] == 1
    assert found["15 s, warm"]["of the longest"]["least"] == 2.0
    assert found["15 s, warm"]["over cublas"]["least"] == 2.0


def test_a_case_of_fewer_seconds_is_held_to_its_own():
    rows = [{"median_s": {"60 s": 4.0, "600 s": 2.0}}, {"median_s": {"60 s": 3.0, "120 s": 3.0}}]
    rows = [{"median_s": row["median_s"] | {"cublas": 3.0}} for row in rows]
    assert summary(rows)["60 s"]["of the longest"] == {
        "geomean": pytest.approx(0.5**0.5),
        "least": 0.5,
    }
