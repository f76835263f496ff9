"""Whether a kernel computes its workload, whatever the order in which things happen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from measure.cuda.emulator.emulator import INTERLEAVINGS, Emulated, Emulator, Interleaving
from measure.inputs import telling_inputs
from measure.records.measurement import ErrorKind
from spaces.contraction import Contraction
from spaces.errors import InputError
from spaces.kernel import Kernel
from spaces.numerics.allowance import agrees, allowed
from spaces.workload import Workload


def verify(
    emulator: Emulator,
    workload: Workload,
    kernel: Kernel,
    interleavings: Sequence[Interleaving] = INTERLEAVINGS,
    seed: int = 0,
) -> Emulated:
    """Run ``kernel`` on telling random inputs in each interleaving and compare with the reference.

    Returns the first fault, its text ending with the interleaving that showed it, or the last
    output if all are as :mod:`spaces.numerics.allowance` has them.
    """
    if not isinstance(workload, Contraction):
        raise InputError(f"{workload} cannot be verified yet: needs a sum of products")
    inputs, scale = telling_inputs(workload, seed)
    low, high = allowed(workload, workload.contract(inputs), inputs, scale)
    result = Emulated()
    for interleaving in interleavings:
        result = emulator.run(kernel, inputs, interleaving)
        kind, text = result.error_kind, result.error_text
        if result.output is not None and (text := _difference(result.output, low, high)):
            kind = ErrorKind.WRONG
        if kind is not None:
            return Emulated(error_kind=kind, error_text=f"{text} ({interleaving})")
    return result


def _difference(output: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Where the output is farthest from what is allowed; empty if it is so nowhere."""
    bad = ~agrees(output, low, high)
    if not bad.any():
        return ""
    found = output.astype(np.float64)
    far = np.where(bad, np.maximum(low - found, found - high), -1.0)
    worst = np.unravel_index(np.argmax(np.where(np.isnan(far), np.inf, far)), far.shape)
    where = ", ".join(str(int(i)) for i in worst)
    return (
        f"{int(bad.sum())} of {bad.size} elements are wrong; at ({where}): "
        f"{found[worst]} instead of {low[worst]} to {high[worst]}"
    )
