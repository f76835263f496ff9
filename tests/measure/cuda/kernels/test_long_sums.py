"""Long sums on a GPU are as near as NumPy's, whichever schedule wins."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.spaces.long_sums import REDUCTIONS, Draw, ErrorBound, drawn, equal, far, offset
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.cuda.emulator.emulator import Interleaving
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

TARGET = detect_target("cuda:sm_90a")
SHORT = [
    ("sum of rows", equal, 30_000),
    ("mean of channels", equal, 50_000),
    ("variance of rows", far, 4096),
    ("variance of columns", far, 1024),
    ("norm of columns", offset, 10**4),
]
EVERY = [
    (name, draw, terms)
    for terms in (10**3, 10**4, 10**5)
    for name, reduction in REDUCTIONS.items()
    for draw in reduction.draws
]


def check(
    emulator: Emulator, name: str, draw: Draw, terms: int, count: int, wanted: str = ""
) -> None:
    """Kernels of random schedules over all templates, or of those ``wanted``, are off by as much as
    NumPy is."""
    reduction = REDUCTIONS[name]
    w = workload(reduction.text, **reduction.shape(terms))
    inputs = drawn(w.program, draw)
    bound = ErrorBound.of(reduction, w.program, inputs)
    space = space_for(w, TARGET)
    rows = np.unique(space.sample(np.random.default_rng(0), count), axis=0)
    schedules = [s for s in map(space.schedule, rows) if re.search(wanted, str(s))]
    kernels = {str(s): space.lower(s) for s in schedules}
    assert kernels
    emulator.build(list(kernels.values()))
    wrong = {}
    for schedule, kernel in kernels.items():
        found = emulator.run(kernel, inputs, Interleaving("eager"))
        assert found.output is not None, found.error_text
        if complaint := bound.complaint(found.output):
            wrong[schedule] = complaint
    assert not wrong


@pytest.mark.parametrize(("name", "draw", "terms"), SHORT)
def test_long_sums_are_as_near_as_those_of_numpy(
    emulator: Emulator, name: str, draw: Draw, terms: int
) -> None:
    check(emulator, name, draw, terms, 4)


def test_parts_of_many_threads_are_joined_like_a_tree(emulator: Emulator) -> None:
    check(emulator, "mean of channels", equal, 10**4, 20, r"lanes=rows row_threads=256")


def test_parts_of_many_blocks_are_joined_as_exactly(emulator: Emulator) -> None:
    wanted = r"reduction_threads=(1 splits=64|4 splits=256)"
    check(emulator, "sum of rows", equal, 300_000, 300, wanted)


@pytest.mark.parametrize("text", ["sum[c](x[r,c])", "sum[c](x[c,r])"])
def test_a_long_sum_that_becomes_infinite_stays_so(emulator: Emulator, text: str) -> None:
    w = workload(f"y[r] = {text}", r=4, c=4096)
    signs = np.array([1, -1, 1, -1], np.float32) * np.float32(1e36)
    x = np.broadcast_to(signs[:, None] if "[r,c]" in text else signs, w.inputs[0].shape)
    space = space_for(w, TARGET)
    rows = space.sample(np.random.default_rng(0), 6)
    kernels = [space.lower(schedule) for schedule in map(space.schedule, rows)]
    emulator.build(kernels)
    for kernel in kernels:
        found = emulator.run(kernel, {"x": np.ascontiguousarray(x)}, Interleaving("eager"))
        assert found.output is not None, found.error_text
        assert found.output.tolist() == [np.inf, -np.inf, np.inf, -np.inf]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "draw", "terms"), EVERY)
def test_every_reduction_is_as_near_as_numpys(
    emulator: Emulator, name: str, draw: Draw, terms: int
) -> None:
    check(emulator, name, draw, terms, 20)
