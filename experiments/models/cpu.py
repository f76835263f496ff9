"""The operators of a model on a CPU, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.operators import cpu
from spaces.schedule import Schedule
from spaces.target import Target

SETTLING = 5.0
"""Seconds that an operator takes after its search: its compiled rival, and timing."""
TIMED = 1.5
LEAST = 2.0
"""Seconds of search, if there are no more."""


def compare(
    operators: Sequence[Any],
    target: Target,
    end: float,
    known: Mapping[str, Sequence[Schedule]],
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each operator and its row of the results, those that compute most first, as many as there is
    time for by ``end`` (of ``time.monotonic``). Schedules that were ``known`` are not asked for."""
    ordered = sorted(operators, key=lambda operator: -operator.workload.flops)
    for number, operator in enumerate(ordered):
        left = end - time.monotonic()
        if left < LEAST + SETTLING:
            return
        seconds = max(LEAST, left / (len(ordered) - number) - SETTLING)
        yield (
            operator,
            cpu.compare(
                operator.workload, operator.rivals, operator.others, target, seconds, TIMED
            ),
        )
