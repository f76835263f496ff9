"""Choose which of several tasks gets the next trials, and the worth of its final comparison.

Pure functions: all choices follow from each task's :class:`TaskStats`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import inf

from tilewright.scheduler.tuning.pace import Worth

ALPHA = 0.2  # weight of what the last units brought, beside what the next one is hoped to bring
BETA = 2.0  # trust in that a task gets as many FLOP/s as those like it
WINDOW = 3  # units that tell what the last ones brought
WARM_UP = 1  # units for each task before any gets more
CONTENDERS = 1 / 16  # share of the right schedules among which luck in a search decides
STALLED = 0.99  # a task above this share of its latency before the window gains nothing


@dataclass(frozen=True)
class TaskStats:
    """The state of one task, as far as allocation needs it.

    ``slope`` is the derivative of the objective by the task's latency, positive where less is
    better. ``flops`` are those of one call. Tasks of the same ``kind`` can be expected to reach
    about as many FLOP/s. ``units`` of trials were spent on it so far, and the next takes
    ``seconds``. ``latencies`` are the best known before each of the last units and now, in seconds,
    oldest first. An entry is None while no kernel was right.
    """

    slope: float
    flops: int
    kind: Hashable
    units: int
    seconds: float
    latencies: tuple[float | None, ...]

    @property
    def latency(self) -> float | None:
        """The best latency known now."""
        return self.latencies[-1]


Allocation = Callable[[Sequence[TaskStats]], list[int]]
"""The places of all tasks, that first which is to get the next unit."""


Worths = Callable[[Sequence[float | None]], list[Worth]]
"""Computes the worth of each task's final comparison from its latency's share of the objective.
The share is None before any kernel was right."""


def equally(parts: Sequence[float | None]) -> list[Worth]:
    """Return the usual worth for each task."""
    return [Worth()] * len(parts)


def by_part(parts: Sequence[float | None]) -> list[Worth]:
    """Worth in proportion to a task's part of the objective; the mean part gets the usual worth.

    If the best latency was lucky by some percent, the objective loses that share of the part. A
    task without a known part gets the usual worth. The share :data:`CONTENDERS` of right schedules
    is compared in any case, as far as there is time: after a thousand trials the next hundred would
    gain less.
    """
    known = [part for part in parts if part]
    mean = sum(known) / max(1, len(known))
    return [Worth(part / mean if part else 1.0, CONTENDERS) for part in parts]


def in_turn(tasks: Sequence[TaskStats]) -> list[int]:
    """Rank tasks by their units, the fewest first, so that all get equal shares."""
    return sorted(range(len(tasks)), key=lambda i: tasks[i].units)


def by_gradient(tasks: Sequence[TaskStats]) -> list[int]:
    """Rank tasks by how much the objective falls per second of tuning: see :func:`gradient`.

    Time is given, not trials: a trial of a large workload takes longer. First each task gets one
    unit, in turn. A task without a right kernel then gets as many units as the others have on
    average. Beyond that such tasks come last, because there may be no right kernel.
    """
    average = sum(task.units for task in tasks) / max(1, len(tasks))
    fastest = _fastest(tasks)

    def rank(place: int) -> tuple[int, float]:
        task = tasks[place]
        if task.units < WARM_UP:
            return 0, task.units
        if task.latency is None:
            return (1 if task.units <= average else 3), task.units
        return 2, gradient(task, fastest[task.kind]) / task.seconds

    return sorted(range(len(tasks)), key=rank)


def gradient(task: TaskStats, fastest: float) -> float:
    """Return the change of the objective f that the next unit of a task is expected to make, at
    most 0.

    For task i with t units, the latency g(t) after them, and C FLOPs,

        df/dt = df/dg * (ALPHA * (g(t) - g(t - WINDOW)) / WINDOW
                         + (1 - ALPHA) * min(-g(t) / t, BETA * C / V - g(t)))

    where V is the ``fastest`` rate, in FLOP/s, that a task of its kind reaches (L. Zheng et al.,
    Ansor, OSDI 2020, section 6, with its constants). The first term is 0 until there are so
    many units. Nothing is expected to become worse. A task that the last units brought nothing has
    shown that it is not like those that reach V: then it is compared with itself alone, for what
    others reach would promise it the same gain for ever.
    """
    now = task.latency
    assert now is not None
    before = task.latencies[-1 - WINDOW] if len(task.latencies) > WINDOW else None
    behind = 0.0 if before is None else (now - before) / WINDOW
    stalled = before is not None and now > STALLED * before
    hoped = inf if stalled or not task.flops else BETA * task.flops / fastest - now
    ahead = min(-now / task.units, hoped)
    return task.slope * min(0.0, ALPHA * behind + (1.0 - ALPHA) * ahead)


def _fastest(tasks: Sequence[TaskStats]) -> dict[Hashable, float]:
    """Return the most FLOP/s that a task of each kind reaches, where one is right."""
    rates: dict[Hashable, float] = {}
    for task in tasks:
        if task.latency is not None:
            rates[task.kind] = max(rates.get(task.kind, 0.0), task.flops / task.latency)
    return rates
