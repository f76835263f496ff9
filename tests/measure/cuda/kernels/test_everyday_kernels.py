"""Every operator of everyday models has a right kernel on a GPU, new or old."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cpu.native import allowed_outputs
from tests.spaces.everyday import OPERATORS, text_of
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.workload import Workload


def kernels(architecture: str, last_resort: bool) -> dict[str, tuple[Workload, Kernel]]:
    """The workload and a kernel of a random schedule of each operator that has one of that kind."""
    found, target = {}, cuda_target(architecture)
    for name in OPERATORS:
        w = workload(text_of(name))
        space = space_for(w, target)
        schedule = space.schedule(space.sample(np.random.default_rng(0), 16)[0])
        if space.templates[schedule.template].last_resort == last_resort:
            found[name] = w, space.lower(schedule)
    return found


def check(emulator: Emulator, made: dict[str, tuple[Workload, Kernel]]) -> None:
    """All are as their programs allow, in a random order of threads."""
    emulator.build([kernel for _, kernel in made.values()])
    wrong = {}
    for name, (w, kernel) in made.items():
        inputs = w.make_inputs(0)
        result = emulator.run(kernel, inputs, INTERLEAVINGS[-1])
        bounds = allowed_outputs(w, inputs)
        right = result.error_kind is None and all(
            agrees(result.outputs[output], *ends).all() for output, ends in bounds.items()
        )
        if not right:
            wrong[name] = result.error_text
    assert wrong == {}


def test_what_only_loops_serve_is_right(emulator):
    made = kernels("sm_90a", last_resort=True)
    assert len(made) > 20
    check(emulator, made)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("last_resort", [False, True])
def test_all_are_right(emulator, architecture, last_resort):
    check(emulator, kernels(architecture, last_resort))
