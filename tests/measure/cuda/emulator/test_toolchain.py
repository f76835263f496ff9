"""What the emulator makes of kernels' names."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import output_of
from tests.measure.cuda.emulator.small_kernels import NUMBERS, run


@pytest.mark.parametrize("name", ["exp", "expf", "main"])
def test_a_kernel_named_like_a_function_of_the_c_library_runs(emulator, name):
    body = "tw::store_global(C + threadIdx.x, tw::load_global(A + threadIdx.x) + 1);"
    np.testing.assert_array_equal(output_of(run(emulator, name, body, threads=64)), NUMBERS + 1)
