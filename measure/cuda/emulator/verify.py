"""Check that a kernel computes its workload under every order of its threads that is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def verify(
    emulator: Emulator,
    workload: Workload,
    kernel: Kernel,
    interleavings: Sequence[Interleaving] = INTERLEAVINGS,
    seed: int = 0,
    numerics: Numerics = Numerics.STRICT,
) -> Emulated:
    """Compare ``kernel`` with the reference on sensitive random inputs, in each interleaving.

    It also runs with further inputs (:mod:`measure.drawing.further_draws`), on which kernels of
    ``numerics`` are right, in the last interleaving. Returns the first fault, its text ending with
    the interleaving that showed it, or the outputs of the random inputs if all are as
    :mod:`measure.drawing.draw` allows.
    """
    draw = one_draw(workload, seed)
    usual = judged(emulator, kernel, draw, interleavings)
    if usual.error_kind is not None:
        return usual
    for other in further_draws(draw, numerics=numerics):
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
