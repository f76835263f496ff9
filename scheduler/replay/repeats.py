"""Many replayed runs: each recording by each search, with one seed after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.scheduler.replay.forked import map_in_processes
from tilewright.scheduler.replay.recording import Recording
from tilewright.scheduler.replay.run import Run, replay
from tilewright.scheduler.replay.scores import Replays
from tilewright.scheduler.strategies.registry import factory


@dataclass(frozen=True)
class Settings:
    """Says how runs are made: ``repeats`` runs, whose seeds count up from ``seed``, of ``trials``
    evaluations, ``batch`` at a time."""

    trials: int
    repeats: int
    batch: int
    seed: int

    @property
    def seeds(self) -> range:
        """The seed of each run."""
        return range(self.seed, self.seed + self.repeats)


def repeated(
    recordings: Sequence[Recording],
    searches: Sequence[str],
    settings: Settings,
    jobs: int | None = None,
) -> Iterator[dict[str, Replays]]:
    """Yield the runs of each recording by the name of each search, in ``jobs`` processes, one for
    each core if nobody says."""

    def run(item: tuple[Recording, str, int]) -> Run:
        recording, name, seed = item
        search = factory(name)(recording.space, seed)
        return replay(recording, search, settings.trials, settings.batch)

    items = [(r, name, seed) for r in recordings for name in searches for seed in settings.seeds]
    runs = map_in_processes(run, items, jobs or len(os.sched_getaffinity(0)))
    for recording in recordings:
        yield {
            name: Replays(recording, [next(runs) for _ in settings.seeds], settings.trials)
            for name in searches
        }
