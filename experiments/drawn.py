"""Kernels of schedules at random, and calls that are held to each other before they are timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from experiments.turns import in_turns
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.spaces.space import Space

Call = Callable[[], Any]


def fastest(
    space: Space, schedules: int, given: Sequence[np.ndarray], clock: Callable[[], float]
) -> CpuFunction:
    """Return the fastest kernel of at most so many ``schedules`` of a space, drawn at random, on
    the ``given`` inputs, by a ``clock`` in seconds."""
    drawn = np.unique(space.sample(np.random.default_rng(0), 4 * schedules), axis=0)
    drawn = np.random.default_rng(1).permutation(drawn)[:schedules]
    functions = [
        CpuFunction(space, space.schedule(row), Provenance.PREDICTED, False) for row in drawn
    ]
    calls = {str(f.schedule): into_place(f, given) for f in functions}
    times = in_turns(calls, 3, clock)
    return min(functions, key=lambda f: min(times[str(f.schedule)]))


def into_place(function: CpuFunction, given: Sequence[np.ndarray]) -> Call:
    """Return a call whose result is written to an array that is there already."""
    result = function(*given)
    return lambda: function(*given, out=result)


def hold_to_the_first(calls: Iterable[Call]) -> None:
    """Hold the results of all calls to that of the first."""
    own, *others = (np.asarray(call()) for call in calls)
    size = float(np.abs(own).max())
    for other in others:
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-4 * size)
