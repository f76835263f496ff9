"""Random schedules of all templates and dtypes: the tuner's check refuses no right kernel.

It checks each on random inputs and on edge inputs, as it checks whoever may win.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from experiments.verification.cases import CASES, EDGES, LARGE
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import ErrorKind
from tilewright.scheduler.verification import Verdict, draw, emulable, emulate, measure
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload

Item = tuple[str, int]
"""A workload's text, and the seed of its schedules."""

DTYPES = ("float32", "float16", "bfloat16")
SHARE = 16
"""Schedules of each template that are drawn at a time: what is allowed of a draw is worked out for
all of them once, which takes most of the time."""


def items(target: str, count: int, seed: int = 0) -> Iterator[Item]:
    """Workloads in turn, until so many schedules are drawn; by this seed and later ones."""
    served = {text: space for text in texts() if (space := _space(target, text)) is not None}
    drawn = 0
    while drawn < count:
        for text, space in served.items():
            yield text, seed
            drawn += SHARE * len(space.templates)
            if drawn >= count:
                return
        seed += 1


def texts() -> list[str]:
    """Return every workload in every dtype that it may have."""
    found = []
    for text in (EDGES | {n: t for n, t in CASES.items() if n not in LARGE}).values():
        found.append(text)
        bare = re.sub(r" dtype=\w+", "", text)
        found += [f"{bare} dtype={dtype}" for dtype in DTYPES]
    return list(dict.fromkeys(found))


def judged(target: str, item: Item) -> dict[str, Any]:
    """Judge schedules of a workload by the check."""
    text, seed = item
    space = _space(target, text)
    assert space is not None
    schedules = draw(space, SHARE * len(space.templates), seed)
    if target == "cpu":
        verdicts = list(measure(space, schedules, _executor()))
    else:
        verdicts = list(emulate(space, schedules, INTERLEAVINGS[-1:], seed, jobs=1))
    return counted(verdicts)


def counted(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return the faults that are found. Kernels that a limit of time ended are slow: it says
    nothing of their results."""
    slow = [v for v in verdicts if v.error_kind is ErrorKind.TIMEOUT]
    wrong = [_told(v) for v in verdicts if v.outcome == "wrong" and v not in slow]
    right = Counter(v.schedule.template for v in verdicts if v.right)
    found = {"kernels": len(wrong) + right.total(), "wrong": wrong, "templates": dict(right)}
    return found | ({"slow": [*map(_told, slow)]} if slow else {})


def _told(verdict: Verdict) -> str:
    return f"{verdict.schedule}: {verdict.error_text}"


@cache
def _target(name: str) -> Target:
    return detect_target(name)


@cache
def _executor() -> Executor:
    return LocalExecutor(_target("cpu"))


def _space(target: str, text: str) -> Space | None:
    """Return the space of a workload, small enough to be emulated if it is; None if there is
    none."""
    try:
        made: Workload = workload(text)
        return space_for(made if target == "cpu" else emulable(made), _target(target))
    except InputError:
        return None
