"""What kernels of random schedules on a CPU write, for whoever judges it."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import Guarded, compile_kernels
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.workload import Workload

TARGET = dataclasses.replace(this_cpu(), threads=2, cores=2)


def result(kernel: Kernel, library: ctypes.CDLL, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """What a kernel writes to its only output."""
    buffers = {o.name: Guarded(o.bytes, 0) for o in kernel.call.arrays}
    for operand in kernel.call.arrays:
        if operand.name in inputs:
            buffers[operand.name].array(operand)[...] = inputs[operand.name]
    workspace = Guarded(kernel.call.workspace_bytes, 0)
    workspace.bytes[: kernel.call.workspace_zeroed] = 0
    pointers = (ctypes.c_void_p * len(buffers))(*(b.address for b in buffers.values()))
    runtime = ctypes.addressof(ctypes.c_char.in_dll(library, "test_runtime"))
    entry = getattr(library, kernel.call.entry)
    entry(pointers, ctypes.c_void_p(workspace.address), ctypes.c_void_p(runtime))
    (output,) = (o for o in kernel.call.arrays if o.name not in inputs)
    return buffers[output.name].array(output).copy()


def results(
    w: Workload, inputs: Mapping[str, np.ndarray], count: int, folder: Path
) -> dict[str, np.ndarray]:
    """What kernels of random schedules over all templates write, by their schedules."""
    space = space_for(w, TARGET)
    rows = np.unique(space.sample(np.random.default_rng(0), count), axis=0)
    kernels = [(str(s), space.lower(s)) for s in map(space.schedule, rows)]
    kernels.sort(key=_prelude)
    found = {}
    for number, (_, group) in enumerate(groupby(kernels, _prelude)):
        found |= _ran(list(group), inputs, folder / str(number))
    return found


def _prelude(named: tuple[str, Kernel]) -> str:
    return named[1].source.prelude


def _ran(
    kernels: Sequence[tuple[str, Kernel]], inputs: Mapping[str, np.ndarray], folder: Path
) -> dict[str, np.ndarray]:
    folder.mkdir()
    library = compile_kernels([kernel for _, kernel in kernels], TARGET, folder)
    return {name: result(kernel, library, inputs) for name, kernel in kernels}
