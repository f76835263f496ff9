"""Kernels on inputs at the edges, held to the float64 program: exact where that is NaN or infinite.

Finite elements are compared loosely: what they may differ by is for other tests to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from tests.spaces.edge_cases import Judged
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator, Interleaving
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.workloads.workload import Workload

H200: CudaTarget = cuda_target("sm_90a")
LARGEST = {"float16": 65504.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
"""Of outputs; all else has the range of float32."""
CLOSE = {"float32": 2e-3, "float64": 1e-6}
"""Allowed of a finite element beside the largest of its output; :data:`COARSE` of all others."""
COARSE = 6e-2

Inputs = Mapping[str, np.ndarray]


def kernels(
    workload: Workload, count: int, seed: int = 0, template: str | None = None
) -> list[Kernel]:
    """Kernels of random schedules on an H200, of one template if it is named."""
    space = space_for(workload, H200)
    rows = space.sample(np.random.default_rng(seed), count * (1 if template is None else 40))
    wanted = [s for s in map(space.schedule, rows) if template in (None, s.template)]
    return [space.lower(s) for s in wanted[:count]]


def complaint(
    emulator: Emulator,
    workload: Workload,
    kernel: Kernel,
    inputs: Inputs,
    expected: Inputs,
    order: Interleaving,
) -> str:
    """What is wrong with a kernel's outputs, which are ``expected``; empty if nothing is."""
    result = emulator.run(kernel, inputs, order)
    if result.error_kind is not None:
        return f"{result.error_kind}: {result.error_text}"
    for output in workload.program.outputs:
        found = result.outputs[output.name].astype(np.float64)
        wrong = _wrong(found, expected[output.name], output.dtype)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            due = expected[output.name][at]
            return f"{wrong.sum()} of {wrong.size} of {output.name}, at {at}: {found[at]} for {due}"
    return ""


def complaints(
    emulator: Emulator,
    workload: Workload,
    made: Sequence[Kernel],
    inputs: Sequence[Inputs],
    orders: Sequence[Interleaving] = (Interleaving("eager"),),
) -> list[str]:
    """All that is wrong, with the kernels' names."""
    emulator.build(made)
    expected = [evaluate(workload.program, given) for given in inputs]
    return [
        f"{kernel.call.entry}, inputs {n}: {found}"
        for kernel in made
        for n, (given, due) in enumerate(zip(inputs, expected, strict=True))
        for order in orders
        if (found := complaint(emulator, workload, kernel, given, due, order))
    ]


def faults(
    emulator: Emulator,
    judged: Judged,
    made: Mapping[Schedule, Kernel],
    orders: Sequence[Interleaving] = INTERLEAVINGS[:2],
) -> list[str]:
    """What is wrong with kernels of a case, by their schedules."""
    emulator.build(list(made.values()))
    found = []
    for (schedule, kernel), order in product(made.items(), orders):
        result = emulator.run(kernel, judged.given, order)
        failed = result.error_text or judged.complaint(result.outputs)
        found += [f"{schedule}, {order}: {failed}"] * bool(failed)
    return found


def _wrong(found: np.ndarray, expected: np.ndarray, kind: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        due = expected.astype(np.float64)
        limit = LARGEST.get(kind, float(np.finfo(np.float32).max))
        if kind != "float64" and not dtype(kind).is_integer:
            due = np.where(np.abs(due) > limit * 1.0001, np.copysign(np.inf, due), due)
        finite = np.isfinite(due)
        scale = max(float(np.max(np.abs(due[finite]), initial=0.0)), 1e-30)
        allowed = CLOSE.get(kind, COARSE) * scale + 1e-37
        same = (found == due) | (np.isnan(found) & np.isnan(due))
        close = finite & np.isfinite(found) & (np.abs(found - due) <= allowed)
    return ~(same | close)
