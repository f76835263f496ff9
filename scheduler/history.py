"""What a search has asked for and been told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from spaces.schedule import Schedule
from spaces.space import Population, Space


class History:
    """The memory of a search: which schedules are taken, and what was told of them.

    It does not depend on the order of telling. A schedule told more than once keeps its best
    latency; one that is no point of ``space`` is ignored.
    """

    def __init__(self, space: Space, seed: int) -> None:
        self.space = space
        self.seed = seed
        self._taken: set[bytes] = set()
        self._told: dict[str, tuple[Schedule, float | None]] = {}
        self._rows: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def generator(self) -> np.random.Generator:
        """Random numbers that depend on nothing but the seed and how many schedules are taken.

        So a search told all that a killed one had asked for goes on as that one would have.
        """
        return np.random.default_rng([self.seed, len(self._taken)])

    def take(self, rows: Iterable[np.ndarray]) -> list[Schedule]:
        """The schedules of ``rows``, from now on taken."""
        taken = []
        for row in rows:
            self._taken.add(_identity(row))
            taken.append(self.space.schedule(row))
        return taken

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> bool:
        """Remember outcomes; whether they say anything new."""
        news = False
        for schedule, latency in results:
            if schedule not in self.space:
                continue
            known, before = (
                schedule.key in self._told,
                self._told.get(schedule.key, (None, None))[1],
            )
            if known and (latency is None or (before is not None and before <= latency)):
                continue
            row = self.space.row(schedule)
            self._taken.add(_identity(row))
            self._rows[schedule.key] = row
            self._told[schedule.key] = (schedule, latency)
            news = True
        return news

    def told(self) -> list[tuple[Schedule, float | None]]:
        """All outcomes, sorted by the schedules' keys."""
        return [self._told[key] for key in sorted(self._told)]

    def best(self, count: int) -> Population:
        """The rows of the ``count`` fastest schedules, fastest first."""
        ranked = sorted(
            (latency, key) for key, (_, latency) in self._told.items() if latency is not None
        )
        rows = [self._rows[key] for _, key in ranked[:count]]
        return np.stack(rows) if rows else np.zeros((0, self.space.width), dtype=np.int32)

    def fresh(self, population: Population) -> list[int]:
        """Positions of the distinct rows that are not taken, in the order in which they first
        stand."""
        identities = _identities(population)
        return [i for i in _first(identities) if identities[i] not in self._taken]

    def free(self, row: np.ndarray) -> bool:
        """Whether the row is not taken."""
        return _identity(row) not in self._taken

    def sample(self, generator: np.random.Generator, count: int) -> Population:
        """``count`` random rows that are not taken; fewer only when there are no more.

        Where sampling finds hardly anything new, the rest comes from enumeration.
        """
        rows = self.space.sample(generator, 4 * count)
        rows = rows[self.fresh(rows)[:count]]
        if len(rows) < count:
            found = {_identity(row) for row in rows}
            every = (row for block in self.space.blocks() for row in block)
            others = (row for row in every if self.free(row) and _identity(row) not in found)
            more = list(islice(others, count - len(rows)))
            rows = np.concatenate([rows, more]) if more else rows
        return rows


def distinct(population: Population) -> list[int]:
    """Positions of the distinct rows, in the order in which they first stand."""
    return _first(_identities(population))


def _first(identities: list[bytes]) -> list[int]:
    """Where each distinct one first stands."""
    backwards = range(len(identities) - 1, -1, -1)
    return sorted(dict(zip(reversed(identities), backwards, strict=True)).values())


def _identities(population: Population) -> list[bytes]:
    rows = np.ascontiguousarray(population, dtype=np.int32)
    return rows.view(f"V{rows.strides[0]}").ravel().tolist()


def _identity(row: np.ndarray) -> bytes:
    return np.ascontiguousarray(row, dtype=np.int32).tobytes()
