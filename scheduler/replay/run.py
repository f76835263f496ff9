"""One search of a recorded space, with each time taken from the record."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from tilewright.scheduler.replay.recording import Outcome, Recording
from tilewright.scheduler.strategies.search import Search


@dataclass(frozen=True)
class Run:
    """The measurements of one search, in order, one entry an evaluation.

    ``seconds`` of one call, infinite where it failed; ``costs`` in seconds, None where the record
    lacks them; ``search_seconds`` is the time that the search itself took, None if not known.
    """

    seconds: np.ndarray
    costs: np.ndarray | None = None
    search_seconds: float | None = None


def replay(recording: Recording, search: Search, trials: int, batch: int) -> Run:
    """Let ``search`` have ``trials`` evaluations, ``batch`` at a time; fewer if there are no more
    schedules."""
    outcomes: list[Outcome] = []
    searching = 0.0
    while len(outcomes) < trials:
        began = time.perf_counter()
        asked = [p.schedule for p in search.ask(min(batch, trials - len(outcomes)))]
        found = [recording.outcomes[schedule] for schedule in asked]
        search.tell([(s, o.seconds) for s, o in zip(asked, found, strict=True)])
        searching += time.perf_counter() - began
        outcomes += found
        if not asked:
            break
    return run_of(outcomes, searching)


def run_of(outcomes: list[Outcome], search_seconds: float | None = None) -> Run:
    """Return the run that had these outcomes."""
    seconds = np.array([np.inf if o.seconds is None else o.seconds for o in outcomes])
    costs = [o.cost for o in outcomes]
    known = None if None in costs else np.array(costs, dtype=np.float64)
    return Run(seconds, known, search_seconds)
