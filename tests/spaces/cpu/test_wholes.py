"""Whole numbers beyond 24, 31 and 53 bits are whole in kernels of every template on a CPU, and none
of these leaves its arrays."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spaces.cpu.fenced import Fenced, apart
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import QUICKLY, compile_kernels, complaint
from tests.spaces.whole_programs import FOUND, KINDS, found, inputs, programs
from tilewright.spaces.cpu.templates import TEMPLATES
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

TARGET = dataclasses.replace(this_cpu(), threads=2, cores=2)
seeds = st.integers(0, 2**16)


def check(w: Workload, seed: int, served: set[str]) -> None:
    """A kernel of each template that serves a workload; their names join ``served``."""
    given_ = inputs(w, seed)
    for template in TEMPLATES.values():
        if template.why_not(w, TARGET):
            continue
        served.add(template.name)
        space = Space(w, TARGET, [template(w, TARGET)])
        row = space.sample(np.random.default_rng(seed), 32)[0]
        kernel = space.lower(space.schedule(row))
        with tempfile.TemporaryDirectory() as folder:
            library = compile_kernels([kernel], TARGET, Path(folder), *QUICKLY)
            found = complaint(kernel, library, w, seed, given_, 0, None, Fenced, apart)
        assert not found, f"{w} {space.schedule(row)}: {found}"


EXPECTED = {
    "gathered": {"map"},
    "read near": {"map"},
    "chosen": {"map"},
    "products of axes": {"map"},
    "beside floats": {"map"},
    "values": {"map"},
    "reduced": {"rows"},
    "functions": {"loops"},
    "parts": {"loops"},
    "rows chosen": {"rows"},
    "windows": {"kept"},
    "products": {"windows"},
    "attention": {"chained"},
    "written": {"loops"},
    "summed": {"loops"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_are_whole(kind):
    served: set[str] = set()

    @settings(max_examples=2)
    @given(programs(kind), seeds)
    def each(w, seed):
        check(w, seed, served)

    each()
    assert served >= EXPECTED[kind]


@pytest.mark.parametrize("value", FOUND)
def test_functions_and_selections_of_whole_numbers_are_whole(value):
    served: set[str] = set()
    for w in found(value):
        check(w, 1, served)
    assert served >= {"map", "rows", "staged"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_of_many_programs_are_whole(kind, dtype):
    @settings(max_examples=100)
    @given(programs(kind, dtype), seeds)
    def each(w, seed):
        check(w, seed, set())

    each()
