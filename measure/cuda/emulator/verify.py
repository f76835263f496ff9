"""Check that a kernel computes its workload under every order of its threads that is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from threading import Lock

import numpy as np

from tilewright.measure.cuda.emulator.emulator import (
    INTERLEAVINGS,
    Emulated,
    Emulator,
    Interleaving,
)
from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.further_draws import further_draws
from tilewright.measure.drawing.interfaces import Bounds, Draw
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.workloads.workload import Workload

REMEMBERED = 16
"""Workloads of which problems are remembered, the last ones: many kernels run on the same ones."""


class Problem:
    """A draw that remembers what its outputs may be."""

    def __init__(self, draw: Draw) -> None:
        self.workload, self.inputs, self.name = draw.workload, draw.inputs, draw.name
        self._draw = draw
        self._allowed: dict[str, Bounds] | None = None

    def allowed(self, out: Mapping[str, Bounds] | None = None) -> dict[str, Bounds]:
        """Return the least and greatest values of each output."""
        if self._allowed is None:
            self._allowed = self._draw.allowed(out)
        return self._allowed


class Problems:
    """The problems of a workload: sensitive random inputs, and then the further ones
    (:mod:`measure.drawing.further_draws`) on which kernels of ``numerics`` are right.

    Each is drawn when it is first asked for, by whichever thread.
    """

    def __init__(self, workload: Workload, seed: int, numerics: Numerics) -> None:
        first = one_draw(workload, seed)
        self._further = chain([first], further_draws(first, numerics=numerics))
        self._drawn: list[Problem] = []
        self._lock = Lock()

    def __iter__(self) -> Iterator[Problem]:
        for place in count():
            with self._lock:
                if place == len(self._drawn):
                    draw = next(self._further, None)
                    if draw is None:
                        return
                    self._drawn.append(Problem(draw))
            yield self._drawn[place]


def problems(
    workload: Workload, seed: int = 0, numerics: Numerics = Numerics.STRICT
) -> Iterator[Problem]:
    """Yield the problems of a workload, which are the same ones for the same seed."""
    names = tuple(operand.name for operand in workload.operands)
    yield from _problems(workload, names, seed, numerics)


@lru_cache(REMEMBERED)
def _problems(
    workload: Workload, names: tuple[str, ...], seed: int, numerics: Numerics
) -> Problems:
    """Return the problems of a workload: equal ones may have other ``names``."""
    return Problems(workload, seed, numerics)


def verify(
    emulator: Emulator,
    workload: Workload,
    kernel: Kernel,
    interleavings: Sequence[Interleaving] = INTERLEAVINGS,
    seed: int = 0,
    numerics: Numerics = Numerics.STRICT,
) -> Emulated:
    """Compare ``kernel`` with the reference on sensitive random inputs, in each interleaving.

    It also runs on the further :class:`Problems`, in the last interleaving. Returns the first
    fault, its text ending with the interleaving that showed it, or the outputs of the random inputs
    if all are as :mod:`measure.drawing.draw` allows.
    """
    every = problems(workload, seed, numerics)
    usual = judged(emulator, kernel, next(every), interleavings)
    if usual.error_kind is not None:
        return usual
    for other in every:
        result = judged(emulator, kernel, other, interleavings[-1:])
        if result.error_kind is not None:
            return result
    return usual


def judged(
    emulator: Emulator, kernel: Kernel, draw: Draw, interleavings: Sequence[Interleaving]
) -> Emulated:
    """Return the first fault on one problem, its text ending with the interleaving that showed it,
    or the last outputs if all are as ``draw`` allows."""
    allowed: Mapping[str, Bounds] | None = None  # takes longer than a run that ends with a fault
    result = Emulated()
    for interleaving in interleavings:
        result = emulator.run(kernel, draw.workload.given(draw.inputs), interleaving)
        kind, text = result.error_kind, result.error_text
        if kind is None:
            allowed = allowed or draw.allowed()
            if text := _difference(result.outputs, allowed):
                kind = ErrorKind.WRONG
        if kind is not None:
            where = f"{draw.name}, {interleaving}" if draw.name else interleaving
            return Emulated(error_kind=kind, error_text=f"{text} ({where})")
    return result


def _difference(outputs: Mapping[str, np.ndarray], allowed: Mapping[str, Bounds]) -> str:
    """Say where the first wrong output is farthest from what is allowed; empty if none is wrong."""
    for name, (low, high) in allowed.items():
        bad = ~agrees(outputs[name], low, high)
        if bad.any():
            return _worst(name, outputs[name].astype(np.float64), bad, low, high)
    return ""


def _worst(name: str, found: np.ndarray, bad: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    with np.errstate(invalid="ignore"):
        far = np.where(bad, np.maximum(low - found, found - high), -1.0)
    worst = np.unravel_index(np.argmax(np.where(np.isnan(far), np.inf, far)), far.shape)
    where = ", ".join(str(int(i)) for i in worst)
    return (
        f"{int(bad.sum())} of {bad.size} elements of {name} are wrong; at ({where}): "
        f"{found[worst]} instead of {low[worst]} to {high[worst]}"
    )
