"""Whatever the language accepts has a kernel on a GPU, and it is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spaces import dtype_programs
from tests.spaces.cpu.native import allowed_outputs
from tests.spaces.function_programs import CASES, PROGRAMS
from tests.spaces.language.strategies import programs
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.served import workload_of

DTYPES = st.sampled_from(
    ["float32", "float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool"]
)
TARGETS = st.sampled_from(["sm_80", "sm_90a"])
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def check(emulator: Emulator, drawn: tuple[str, dict[str, int]], dtype: str, name: str) -> None:
    """A kernel of a random schedule is right, if the text is a program."""
    text, extents = drawn
    try:
        made = program(text, dtype=dtype, **extents)
    except InputError:
        return
    w = workload_of(made)
    space = space_for(w, cuda_target(name))
    kernel = space.lower(space.schedule(space.sample(np.random.default_rng(0), 16)[0]))
    inputs = w.make_inputs(0)
    result = emulator.run(kernel, inputs, INTERLEAVINGS[-1])
    assert result.error_kind is None, result.error_text
    for output, ends in allowed_outputs(w, inputs).items():
        assert agrees(result.outputs[output], *ends).all(), output


@given(programs(), DTYPES, TARGETS)
@settings(max_examples=6, suppress_health_check=SHARED)
def test_random_programs_have_right_kernels(emulator, drawn, dtype, name):
    check(emulator, drawn, dtype, name)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_programs_that_call_the_library_have_right_kernels(emulator, name, dtype):
    check(emulator, (PROGRAMS[name], {"r": 12, "c": 37}), dtype, "sm_90a")


@pytest.mark.parametrize("name", dtype_programs.PROGRAMS)
def test_programs_of_further_dtypes_have_right_kernels(emulator, name):
    text = dtype_programs.PROGRAMS[name]
    check(emulator, (text, dtype_programs.extents(text)), "float32", "sm_90a")


@pytest.mark.slow
@given(programs(), DTYPES, TARGETS)
@settings(max_examples=200, suppress_health_check=SHARED)
def test_many_random_programs_have_right_kernels(emulator, drawn, dtype, name):
    check(emulator, drawn, dtype, name)
