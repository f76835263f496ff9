"""The operators of a model on a CPU, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.operators import cpu
from tilewright.costmodel.roofs.peaks import peaks_for
from tilewright.costmodel.roofs.roofline import ideal_seconds
from tilewright.scheduler.machine import measured_peaks
from tilewright.spaces.target import Target

SETTLING = 2.5
"""Seconds that an operator takes beside its search: its compiled rival, and timing."""
TIMED = 0.8
LEAST, MOST = 1.0, 20.0
"""Seconds of search, the first even if there are no more."""


def compare(
    operators: Mapping[Any, int],
    target: Target,
    end: float,
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each operator and its row of the results, those first that a model which has each so
    often waits for longest, as many as there is time for by ``end`` (of ``time.monotonic``). The
    longer it waits, the longer they are searched for."""
    peaks = measured_peaks(target)
    waits = {
        o: n * ideal_seconds(o.workload, peaks_for(o.workload, target, peaks))
        for o, n in operators.items()
    }
    ordered = sorted(waits, key=lambda operator: -waits[operator])
    for number, operator in enumerate(ordered):
        left = end - time.monotonic()
        if left < LEAST + SETTLING:
            return
        seconds = _search(left, [waits[other] for other in ordered[number:]])
        yield (
            operator,
            cpu.compare(
                operator.workload, operator.rivals, operator.others, target, seconds, TIMED
            ),
        )


def _search(left: float, waits: Sequence[float]) -> float:
    """Return the seconds of search for the first of some operators that share the seconds ``left``:
    all have the least, and of the rest as much as a model waits for them."""
    spare = left - (LEAST + SETTLING) * len(waits)
    return min(MOST, LEAST + max(0.0, spare) * waits[0] / sum(waits))
