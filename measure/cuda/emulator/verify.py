"""Whether a kernel computes its workload, whatever the order in which things happen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from measure.cuda.emulator.emulator import INTERLEAVINGS, Emulated, Emulator, Interleaving
from measure.measurement import ErrorKind
from spaces.kernel import Kernel
from spaces.workload import Workload


def verify(
    emulator: Emulator,
    workload: Workload,
    kernel: Kernel,
    interleavings: Sequence[Interleaving] = INTERLEAVINGS,
    seed: int = 0,
) -> Emulated:
    """Run ``kernel`` on random inputs in each interleaving and compare with the reference.

    Returns the first fault, its text ending with the interleaving that showed it, or the last
    output if all agree within ``workload.tolerance``.
    """
    inputs = workload.make_inputs(seed)
    reference = workload.reference(inputs)
    result = Emulated()
    for interleaving in interleavings:
        result = emulator.run(kernel, inputs, interleaving)
        kind, text = result.error_kind, result.error_text
        if result.output is not None and (text := _difference(workload, result.output, reference)):
            kind = ErrorKind.WRONG
        if kind is not None:
            return Emulated(error_kind=kind, error_text=f"{text} ({interleaving})")
    return result


def _difference(workload: Workload, output: np.ndarray, reference: np.ndarray) -> str:
    """Where the output is farthest from the reference beyond the tolerance; empty if nowhere."""
    relative, absolute = workload.tolerance
    found = output.astype(reference.dtype)
    error = np.abs(found - reference)
    excess = error - (absolute + relative * np.abs(reference))
    bad = ~(excess <= 0)  # NaN counts as bad
    if not bad.any():
        return ""
    worst = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), error.shape)
    where = ", ".join(str(int(i)) for i in worst)
    return (
        f"{int(bad.sum())} of {bad.size} elements are wrong; at ({where}): "
        f"{found[worst]} instead of {reference[worst]}"
    )
