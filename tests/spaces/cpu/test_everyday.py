"""Every operator of everyday models has a right kernel on a CPU."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import compile_kernels, complaint
from tests.spaces.everyday import OPERATORS, text_of
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.workload import Workload

TARGET = this_cpu()


def kernel_of(name: str) -> tuple[Workload, Kernel, bool]:
    """The workload, a kernel of a random schedule, and whether it is of a last resort."""
    w = workload(text_of(name))
    space = space_for(w, TARGET)
    schedule = space.schedule(space.sample(np.random.default_rng(0), 16)[0])
    return w, space.lower(schedule), space.templates[schedule.template].last_resort


def complaints(names: list[str], folder: Path, last_resort: bool) -> dict[str, str]:
    """What is wrong with each; kernels of one prelude are compiled together."""
    groups = defaultdict[str, dict[str, tuple[Workload, Kernel]]](dict)
    for name in names:
        w, kernel, is_last = kernel_of(name)
        if is_last == last_resort:
            groups[kernel.source.prelude][name] = w, kernel
    found = {}
    for number, made in enumerate(groups.values()):
        place = folder / str(number)
        place.mkdir()
        kernels = {kernel.call.entry: kernel for _, kernel in made.values()}
        library = compile_kernels(list(kernels.values()), TARGET, place)
        found |= {name: complaint(kernel, library, w, 0) for name, (w, kernel) in made.items()}
    return found


def test_what_only_loops_serve_is_right(tmp_path):
    found = complaints(list(OPERATORS), tmp_path, last_resort=True)
    assert {name: text for name, text in found.items() if text} == {}
    assert len(found) > 20


@pytest.mark.slow
def test_all_others_are_right(tmp_path):
    found = complaints(list(OPERATORS), tmp_path, last_resort=False)
    assert {name: text for name, text in found.items() if text} == {}
    assert len(found) > 80
