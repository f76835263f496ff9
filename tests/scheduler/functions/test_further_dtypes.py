"""Arrays and tensors of int64, uint8 and bool are taken by kernels as they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tilewright.scheduler.best import best
from tilewright.scheduler.functions.arrays import Port
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload

TEXT = (
    "t: int64[i](index < 9)\nw: float32[9, j]\nm: bool[i,j]\nz: int64\ny: float32\n"
    "y[i,j] = select(m[i,j], w[t[i], j], 0)\nz[i] = argmax[j](w[t[i], j])\n-> y, z"
)


@pytest.fixture(scope="module")
def function():
    return best(workload(TEXT, i=7, j=33), database=None)


def test_torch_tensors_are_read_in_place(function):
    torch.manual_seed(0)
    t, w, m = torch.randint(0, 9, (7,)), torch.rand(9, 33), torch.rand(7, 33) > 0.5
    y, z = function(t=t, w=w, m=m)
    assert z.dtype is torch.int64
    assert torch.equal(y, torch.where(m, w[t], 0.0))
    assert torch.equal(z, w[t].argmax(-1))
    t[0] = (t[0] + 1) % 9
    assert torch.equal(function(t=t, w=w, m=m)[1], w[t].argmax(-1))


def test_arrays_of_numpy_are_read_in_place(function):
    rng = np.random.default_rng(0)
    t, w, m = rng.integers(0, 9, 7), rng.random((9, 33), np.float32), rng.random((7, 33)) > 0.5
    y, z = function(t=t, w=w, m=m)
    np.testing.assert_array_equal(y, np.where(m, w[t], 0))
    np.testing.assert_array_equal(z, w[t].argmax(-1))


def test_an_array_of_another_dtype_is_refused(function):
    w, m = torch.rand(9, 33), torch.rand(7, 33) > 0.5
    with pytest.raises(InputError, match="allowed: int64 of shape"):
        function(t=torch.zeros(7, dtype=torch.int32), w=w, m=m)


@pytest.mark.parametrize("name", ["int64", "uint8", "bool"])
def test_memory_of_an_array_is_that_of_the_tensor(name):
    (operand,) = (
        o for o in workload(f"x: {name}[i]\ny[i] = x[i] * 0.5", i=5).inputs if o.name == "x"
    )
    tensor = torch.ones(5, dtype=getattr(torch, name))
    assert Port(operand).address(tensor) == tensor.data_ptr()
