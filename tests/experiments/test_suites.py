"""The comparison of the task scheduler with equal shares, on two tiny products."""

from __future__ import annotations

import json

import pytest

from experiments.suites.__main__ import CONTENDERS, compare
from scheduler.suites.suite import Member, Suite
from spaces.operators import workload
from spaces.target import detect_target


@pytest.mark.slow
def test_both_are_run_and_compared():
    members = (
        Member(workload("matmul m=64 n=64 k=64"), 9.0),
        Member(workload("matmul m=8 n=8 k=8")),
    )
    report = compare(Suite("two", members), detect_target("cpu"), seconds=8.0, seed=1)
    assert list(report["runs"]) == list(reversed(CONTENDERS))
    assert report["ratio"] > 0
    for run in report["runs"].values():
        assert run["value_s"] > 0
        assert [task["weight"] for task in run["tasks"]] == [9.0, 1.0]
        assert run["trials"] == sum(task["trials"] for task in run["tasks"])
    assert json.loads(json.dumps(report))["ratio"] == report["ratio"]
