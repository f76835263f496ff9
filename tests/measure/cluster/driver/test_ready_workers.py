"""Ready workers, and what is remembered of the workers that left."""

from __future__ import annotations

from tests.measure.cluster.driver.made_up_work import worker
from tests.measure.cluster.simulated import TARGET
from tilewright.measure.cluster.driver.ready_workers import REMEMBERED, ReadyWorkers


def test_however_many_workers_leave_the_ends_of_the_last_ones_are_kept():
    ready = ReadyWorkers()
    for number in range(REMEMBERED + 10):
        ready.join(worker(f"w{number}"))
        ready.leave(f"w{number}", "early" if number < 15 else "late")
    assert ready.ended(TARGET, "run") == {"early": 5, "late": REMEMBERED - 5}
