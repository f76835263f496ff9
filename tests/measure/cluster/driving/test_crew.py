"""What a crew remembers of the workers that left."""

from __future__ import annotations

from tests.measure.cluster.driving.made_up_work import worker
from tests.measure.cluster.simulated import TARGET
from tilewright.measure.cluster.driving.crew import REMEMBERED, Crew


def test_however_many_workers_leave_the_ends_of_the_last_ones_are_kept():
    crew = Crew()
    for number in range(REMEMBERED + 10):
        crew.join(worker(f"w{number}"))
        crew.leave(f"w{number}", "early" if number < 15 else "late")
    assert crew.ended(TARGET, "run") == {"early": 5, "late": REMEMBERED - 5}
