"""Rows on a CPU, their kernels, and whether these are right."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import compile_kernels, complaint
from tilewright.spaces.cpu.rows.template import RowsTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language import program
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

TARGET = dataclasses.replace(this_cpu(), threads=2, cores=2, l2_bytes=32 << 10)
"""With an L2 so small that streaming stores are of use to small outputs, too."""


def own(text: str, **extents: int) -> Workload:
    made = program(text, **extents)
    return Workload("program", (), made, "")


def space_of(w: Workload, target: CpuTarget = TARGET) -> Space:
    return Space(w, target, [RowsTemplate(w, target)])


def lowered(w: Workload, target: CpuTarget, count: int, seed: int = 0) -> dict[Schedule, Kernel]:
    """Kernels of some schedules of the space."""
    space = space_of(w, target)
    drawn = np.unique(space.sample(np.random.default_rng(seed), count), axis=0)
    schedules = [space.schedule(row) for row in drawn]
    return {schedule: space.lower(schedule) for schedule in schedules}


def complaints(w: Workload, kernels: dict[Schedule, Kernel], folder: Path) -> list[str]:
    """What is wrong with any of the kernels."""
    library = compile_kernels(list(kernels.values()), TARGET, folder)
    found = {s: complaint(kernel, library, w, 1) for s, kernel in kernels.items()}
    return [f"{s}: {problem}" for s, problem in found.items() if problem]
