"""Whatever the language accepts has a kernel on a CPU, and it is right."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import QUICKLY, compile_kernels, complaint
from tests.spaces.language.strategies import programs
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.served import workload_of

TARGET = this_cpu()
DTYPES = st.sampled_from(
    ["float32", "float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool"]
)


def check(drawn: tuple[str, dict[str, int]], dtype: str, seed: int) -> None:
    """A kernel of a random schedule is right, if the text is a program."""
    text, extents = drawn
    try:
        made = program(text, dtype=dtype, **extents)
    except InputError:
        return
    w = workload_of(made)
    space = space_for(w, TARGET)
    rows = space.sample(np.random.default_rng(seed), 16)
    kernel = space.lower(space.schedule(rows[0]))
    with TemporaryDirectory() as folder:
        library = compile_kernels([kernel], TARGET, Path(folder), *QUICKLY)
        assert not complaint(kernel, library, w, seed)


@given(programs(), DTYPES)
@settings(max_examples=8)
def test_random_programs_have_right_kernels(drawn, dtype):
    check(drawn, dtype, 0)


@pytest.mark.slow
@given(programs(), DTYPES, st.integers(0, 9))
@settings(max_examples=400)
def test_many_random_programs_have_right_kernels(drawn, dtype, seed):
    check(drawn, dtype, seed)
