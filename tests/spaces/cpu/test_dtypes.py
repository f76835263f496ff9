"""Kernels of programs with arrays of int64, uint8 and bool, by whichever template serves them."""

from __future__ import annotations

import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled
from tests.spaces.dtype_programs import PROGRAMS, extents
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_are_right(name, tmp_path):
    text = PROGRAMS[name]
    check_sampled(space_for(workload(text, **extents(text)), this_cpu()), 1, 0, tmp_path)
