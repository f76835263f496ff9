"""Whole numbers beyond 24, 31 and 53 bits are whole in kernels of every template on a GPU, and none
of these leaves its arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spaces.whole_programs import FOUND, KINDS, found, inputs, programs
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.cuda.emulator.emulator import INTERLEAVINGS
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.cuda.templates import TEMPLATES
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

TARGET = cuda_target("sm_90a")
seeds = st.integers(0, 2**16)
EXPECTED = {
    "gathered": {"map"},
    "read near": {"map"},
    "chosen": {"map", "rows"},
    "products of axes": {"map", "rows"},
    "beside floats": {"map", "rows"},
    "values": {"map"},
    "reduced": {"rows"},
    "functions": {"map", "rows"},
    "parts": {"loops"},
    "rows chosen": {"rows"},
    "windows": {"kept"},
    "products": {"simt"},
    "attention": {"chained"},
    "written": {"loops"},
    "summed": {"loops"},
}


def check(emulator: Emulator, w: Workload, seed: int, served: set[str]) -> None:
    """A kernel of each template that serves a workload; their names join ``served``."""
    drawn = inputs(w, seed)
    bounds = allowed(w.program, drawn)
    for template in TEMPLATES.values():
        if template.why_not(w, TARGET):
            continue
        space = Space(w, TARGET, [template(w, TARGET)])
        rows = space.sample(np.random.default_rng(seed), 32)
        if not len(rows):
            continue
        served.add(template.name)
        schedule = space.schedule(rows[0])
        done = emulator.run(space.lower(schedule), drawn, INTERLEAVINGS[seed % len(INTERLEAVINGS)])
        assert done.error_kind is None, f"{w} {schedule}: {done.error_text}"
        for name, (low, high) in bounds.items():
            wrong = ~agrees(done.outputs[name], low, high)
            assert not wrong.any(), f"{w} {schedule}: {wrong.sum()} wrong"


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_are_whole(emulator, kind):
    served: set[str] = set()
    dtype = "float16" if kind in ("products", "attention") else "float32"

    @settings(max_examples=4)
    @given(programs(kind, dtype), seeds)
    def each(w, seed):
        check(emulator, w, seed, served)

    each()
    assert served >= EXPECTED[kind]


@pytest.mark.parametrize("value", FOUND)
def test_functions_and_selections_of_whole_numbers_are_whole(emulator, value):
    served: set[str] = set()
    for w in found(value):
        check(emulator, w, 1, served)
    assert served >= {"map", "rows", "staged"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_of_many_programs_are_whole(emulator, kind, dtype):
    @settings(max_examples=60)
    @given(programs(kind, dtype), seeds)
    def each(w, seed):
        check(emulator, w, seed, set())

    each()
