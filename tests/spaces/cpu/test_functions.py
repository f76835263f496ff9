"""Kernels of programs that call C's library's functions, by whichever template serves them."""

from __future__ import annotations

import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled
from tests.spaces.function_programs import CASES, PROGRAMS
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_kernels_are_right(name, dtype, tmp_path):
    space = space_for(workload(PROGRAMS[name], r=12, c=37, dtype=dtype), this_cpu())
    check_sampled(space, 1, 0, tmp_path)
