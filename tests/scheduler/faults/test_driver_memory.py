"""What a run keeps of the candidates that it is done with."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import closing

from tests.measure.cluster.simulated import SimulatedBuilder, SimulatedRunner
from tilewright.measure.database import Database
from tilewright.measure.executor import LocalExecutor
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.testing.landscape import hills
from tilewright.scheduler.tuning.events import Progress
from tilewright.scheduler.tuning.tuner import Tuner

FIRST, LAST = 100, 350


def test_a_candidate_leaves_little_behind(tmp_path, monkeypatch):
    """Less than its schedule alone takes, once what is kept of the best and the latest is full."""
    monkeypatch.setattr("tilewright.spaces.space.space.REMEMBERED", 16)
    monkeypatch.setattr("tilewright.measure.records.ranking.REMEMBERED", 16)
    space, occupied = hills(), dict[int, int]()

    def note(progress: Progress) -> None:
        if progress.trials in (FIRST, LAST):
            gc.collect()
            occupied[progress.trials] = tracemalloc.get_traced_memory()[0]

    device = LocalExecutor(space.target, 1, SimulatedBuilder(), SimulatedRunner(0.0))
    with closing(device), Database(tmp_path / "tuning.db") as database:
        tuner = Tuner(space.workload, space.target, database, device, RandomSearch, spaces=[space])
        tracemalloc.start()
        try:
            tuner.run(LAST, 600.0, on_progress=note)
        finally:
            tracemalloc.stop()
    assert (occupied[LAST] - occupied[FIRST]) / (LAST - FIRST) < 700
