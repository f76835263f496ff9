"""Random programs with edge inputs: kernels are right, and stay within their arrays.

On a CPU arrays lie between pages without access, before and behind them, and code without meaning
in C ends its process; then the same without these checks of the compiler. On the emulator of a GPU
every access is checked.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hypothesis.errors import UnsatisfiedAssumption

from tests.spaces.edge_programs import Case, case_of

SCHEDULES = {"cpu": 3, "cuda:sm_90a": 2}
"""Kernels of each program, on a target."""


def items(target: str, count: int, seed: int = 0) -> Iterator[int]:
    """Yield the numbers of so many programs."""
    generator, found = random.Random(28 + seed), 0
    while found < count:
        number = generator.getrandbits(64)
        if _case(number) is not None:
            found += 1
            yield number


def judged(target: str, number: int) -> dict[str, Any]:
    """Judge kernels of a program: the faults that are found."""
    case = _case(number)
    assert case is not None
    found = (_on_cpu if target == "cpu" else _emulated)(case, SCHEDULES[target])
    told = {"case": [*case[:3]]} if found["wrong"] else {}
    return found | told


def _case(number: int) -> Case | None:
    try:
        return case_of(number)
    except UnsatisfiedAssumption:  # the language refuses it
        return None


def _on_cpu(case: Case, schedules: int) -> dict[str, Any]:
    from tests.spaces.cpu.edges import BETWEEN_WALLS, TARGET, TRAPPED, judged_in
    from tests.spaces.edge_cases import Judged

    own = Judged.of(case, TARGET)
    if own is None:
        return {"kernels": 0, "wrong": []}
    wrong = [
        line for places in (TRAPPED, BETWEEN_WALLS) for line in judged_in(own, schedules, places)
    ]
    return {"kernels": len(own.kernels(schedules)), "wrong": wrong}


def _emulated(case: Case, schedules: int) -> dict[str, Any]:
    from tests.measure.cuda.edges import H200, faults
    from tests.spaces.edge_cases import Judged
    from tilewright.measure.cuda.emulator import Emulator

    own = Judged.of(case, H200)
    if own is None:
        return {"kernels": 0, "wrong": []}
    kernels = own.kernels(schedules)
    with Emulator() as emulator:
        return {"kernels": len(kernels), "wrong": faults(emulator, own, kernels)}
