"""Functions that hold some of their arrays: what they check, and when."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from tilewright.scheduler.best import best
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program

SPMM = program(
    "row: int32[e](sorted < r); col: int32[e](index < 9); where row[e] == r; "
    "y[r,c] = sum[e](val[e] * x[col[e],c])", r=5, e=20, c=6,
)  # fmt: skip
ROW = np.sort(np.random.default_rng(0).integers(0, 5, 20)).astype(np.int32)
COL = np.random.default_rng(1).integers(0, 9, 20).astype(np.int32)
VAL, X = np.linspace(-1, 1, 20, dtype=np.float32), np.ones((9, 6), np.float32)
WANTED = np.zeros((5, 6), np.float32)
np.add.at(WANTED, ROW, VAL[:, None] * X[COL])


@pytest.fixture(scope="module")
def function():
    return best(SPMM, "cpu", None)


def test_the_other_arrays_are_given_by_position_or_by_name(function):
    held = function.holding(col=COL, row=ROW)
    np.testing.assert_allclose(held(VAL, X), WANTED, atol=1e-6)
    np.testing.assert_allclose(held(x=X, val=VAL), WANTED, atol=1e-6)
    out = np.zeros_like(WANTED)
    assert held(VAL, X, out=out) is out
    np.testing.assert_allclose(out, WANTED, atol=1e-6)
    with pytest.raises(InputError, match="the kernel takes val, x, each once; got 1 by position"):
        held(VAL)


def test_outputs_are_of_the_kind_that_is_given(function):
    held = function.holding(col=COL, row=ROW, val=VAL)
    assert isinstance(held(X), np.ndarray)
    assert isinstance(held(torch.from_numpy(X)), torch.Tensor)
    assert isinstance(function.holding(row=ROW, col=COL, val=VAL, x=X)(), np.ndarray)


def test_held_arrays_are_checked_once(function):
    with pytest.raises(InputError, match="col holds the index 9; allowed: 0 to 8"):
        function.holding(col=COL + 1, row=ROW)
    with pytest.raises(InputError, match="row is not sorted"):
        function.holding(row=ROW[::-1].copy())
    with pytest.raises(InputError, match="row is int64"):
        function.holding(row=ROW.astype(np.int64))
    with pytest.raises(InputError, match="the kernel takes no 'rows'; it takes row, col, val, x"):
        function.holding(rows=ROW)
    col = COL.copy()
    held = function.holding(col=col)
    col[:] = 99
    held(ROW, VAL, X)  # within its arrays, as each kernel
    with pytest.raises(InputError, match="row is not sorted"):
        held(ROW[::-1].copy(), VAL, X)


def test_pointers_that_are_held_are_to_end_at_the_number_of_entries():
    text = "ptr: int32[r+1](sorted < e+1); y[r] = sum[e: ptr[r] <= e < ptr[r + 1]](x[e])"
    rows = best(program(text, r=3, e=4), "cpu", None)
    held = rows.holding(ptr=np.array([0, 1, 3, 4], np.int32))
    np.testing.assert_allclose(held(np.arange(4, dtype=np.float32)), [0, 3, 3])
    with pytest.raises(InputError, match="ptr ends at 3; allowed: 4"):
        rows.holding(ptr=np.array([0, 1, 3, 3], np.int32))


def test_it_can_be_copied_and_pickled(function):
    held = function.holding(row=ROW, col=COL)
    for other in (copy.copy(held), pickle.loads(pickle.dumps(held))):
        np.testing.assert_allclose(other(VAL, X), WANTED, atol=1e-6)
