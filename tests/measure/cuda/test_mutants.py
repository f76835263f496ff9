"""GPU kernels that are wrong at the edge alone are found on the emulator."""

from __future__ import annotations

import re

import pytest

from experiments.verification.cases import EDGES
from experiments.verification.planting import FAULTS, Planted
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

NAMES = ("softmax", "decode", "mask", "lengths", "differences", "far indices")
CASES = {name: EDGES[f"{name}, edges"] for name in NAMES}
GPU = [fault for fault in FAULTS if "CPU" not in fault.name]
SCHEDULES = 4, 40
"""Of each template, more if none has a place: few kernels correct late and in one part."""

pytestmark = pytest.mark.usefixtures("libraries")


@pytest.mark.parametrize("fault", GPU, ids=lambda fault: fault.name)
def test_mutants_are_found(fault):
    for name in (name for name in CASES if re.search(fault.cases, name)):
        space = space_for(workload(CASES[name]), cuda_target("sm_90a"))
        planted = Planted(space, fault)
        counts = (number * len(space.templates) for number in SCHEDULES)
        served = next(filter(None, (planted.served(draw(space, n, 0)) for n in counts)), [])
        verdicts = list(emulate(planted, served[:1], INTERLEAVINGS[:1], jobs=1))
        assert all(verdict.outcome == "wrong" for verdict in verdicts)
        if verdicts:
            return
    raise AssertionError(f"no kernel has a place for {fault.name}")
