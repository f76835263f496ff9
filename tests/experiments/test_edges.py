"""What random programs and schedules at the edges are counted as."""

from __future__ import annotations

from experiments.edges.__main__ import _take
from experiments.edges.schedules import counted
from tilewright.measure.records.measurement import ErrorKind
from tilewright.scheduler.verification import Verdict
from tilewright.spaces.schedule import Schedule


def test_what_a_limit_of_time_ends_is_slow_and_not_wrong():
    schedule = Schedule("loops", (("workers", 1),))
    right = Verdict(schedule)
    late = Verdict(schedule, ErrorKind.TIMEOUT, "no end within 2 s")
    wrong = Verdict(schedule, ErrorKind.WRONG, "1 wrong")
    results = {"rows": [], "items": 0, "kernels": 0, "wrong": 0, "slow": 0}
    _take(results, {"item": 0} | counted([right, late]))
    _take(results, {"item": 1} | counted([wrong, right]))
    _take(results, {"item": 2} | counted([right]))
    assert [row["item"] for row in results.pop("rows")] == [0, 1]
    counts = {"items": 3, "kernels": 4, "wrong": 1, "slow": 1}
    assert results == counts | {"templates": {"loops": 3}}
