"""Records the schedules that a search has asked for, and their results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space

LEADERS = 64  # number of leaders kept in order
PACKED = np.dtype("<u2")
"""Holds the index of any decision's value."""

UNTOLD = math.nan


class History:
    """The memory of a search: which schedules are taken, and what was told of them.

    It does not depend on the order of telling. A schedule told more than once keeps its best
    latency; one that is no point of ``space`` is ignored. A schedule is kept as its row alone, in
    about 130 bytes.
    """

    def __init__(self, space: Space, seed: int) -> None:
        self.space = space
        self.seed = seed
        self.news = 0
        """The number of outcomes told that said anything new."""
        self._seconds: dict[bytes, float] = {}  # of what is taken; infinite where it failed
        self._fastest: list[tuple[float, bytes]] = []  # the first ``LEADERS``

    def __len__(self) -> int:
        return len(self._seconds)

    def generator(self) -> np.random.Generator:
        """Random numbers that depend on nothing but the seed and how many schedules are taken.

        So a search told all that a killed one had asked for goes on as that one would have.
        """
        return np.random.default_rng([self.seed, len(self)])

    def take(self, rows: Iterable[np.ndarray]) -> list[Schedule]:
        """Return the schedules of ``rows``, from now on taken."""
        taken = []
        for row in rows:
            self._seconds.setdefault(_identity(row), UNTOLD)
            taken.append(self.space.schedule(row))
        return taken

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Remember outcomes."""
        for schedule, latency in results:
            if schedule not in self.space:
                continue
            identity = _identity(self.space.row(schedule))
            seconds = math.inf if latency is None else latency
            if self._seconds.get(identity, UNTOLD) <= seconds:
                continue
            self._seconds[identity] = seconds
            self.news += 1
            if latency is not None:
                others = [other for other in self._fastest if other[1] != identity]
                self._fastest = sorted([*others, (latency, identity)])[:LEADERS]

    def told(self) -> tuple[Population, np.ndarray]:
        """Return all outcomes: rows, in an order of their own, and the latency of each, NaN where
        it failed."""
        known = sorted((row, s) for row, s in self._seconds.items() if not math.isnan(s))
        latency = np.array([seconds for _, seconds in known])
        latency[np.isinf(latency)] = np.nan
        return self._rows([row for row, _ in known]), latency

    def best(self, count: int) -> Population:
        """Return the rows of the ``count`` fastest schedules, ``LEADERS`` at most, fastest
        first."""
        return self._rows([row for _, row in self._fastest[:count]])

    def fresh(self, population: Population) -> list[int]:
        """Return the positions of the distinct rows that are not taken, in the order in which they
        first stand."""
        identities = _identities(population)
        return [i for i in _first(identities) if identities[i] not in self._seconds]

    def free(self, row: np.ndarray) -> bool:
        """Return True if nobody has taken the row."""
        return _identity(row) not in self._seconds

    def knows(self, row: np.ndarray) -> bool:
        """Return True if a result of the row is known."""
        return not math.isnan(self._seconds.get(_identity(row), UNTOLD))

    def seconds(self, row: np.ndarray) -> float:
        """Return the result of the row in seconds; infinite if it failed, or none is known."""
        seconds = self._seconds.get(_identity(row), UNTOLD)
        return math.inf if math.isnan(seconds) else seconds

    def sample(self, generator: np.random.Generator, count: int) -> Population:
        """Return ``count`` random rows that are not taken; fewer only when there are no more.

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

    def _rows(self, identities: Sequence[bytes]) -> Population:
        flat = np.frombuffer(b"".join(identities), dtype=PACKED)
        return flat.reshape(len(identities), self.space.width).astype(np.int32)


def distinct(population: Population) -> list[int]:
    """Return the positions of the distinct rows, in the order in which they first stand."""
    return _first(_identities(population))


def _first(identities: list[bytes]) -> list[int]:
    """Say where each distinct one first stands."""
    backwards = range(len(identities) - 1, -1, -1)
    return sorted(dict(zip(reversed(identities), backwards, strict=True)).values())


def _identities(population: Population) -> list[bytes]:
    rows = np.ascontiguousarray(population, dtype=PACKED)
    return rows.view(f"V{rows.strides[0]}").ravel().tolist()


def _identity(row: np.ndarray) -> bytes:
    return row.astype(PACKED).tobytes()
