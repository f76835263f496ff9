"""Functions of the CPU here, their arguments, and whether they are right."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.spaces.numerics.allowance import agrees, allowed
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.workload import Workload

TARGET = detect_target("cpu")
FUSED = {"m": 33, "n": 40, "k": 17, "epilogue": "relu(x + bias[n]) + residual[m,n]"}


@cache
def function(**parameters: Any) -> CpuFunction:
    """The function of some schedule that packs, and so has a workspace."""
    space = space_for(workload("matmul", **parameters), TARGET)
    rows = space.sample(np.random.default_rng(0), 200)
    schedules = [space.schedule(row) for row in rows]
    packing = [s for s in schedules if s.values.get("pack_left") and s.values.get("pack_right")]
    return CpuFunction(space, (packing or schedules)[0], "given")


def arguments(work: Workload, seed: int = 0) -> list[np.ndarray]:
    inputs = work.make_inputs(seed)
    return [inputs[operand.name] for operand in work.inputs]


def check(work: Workload, result: np.ndarray, seed: int = 0) -> None:
    inputs = work.make_inputs(seed)
    assert agrees(result, *allowed(work.matmul, work.matmul.contract(inputs), inputs)).all()
