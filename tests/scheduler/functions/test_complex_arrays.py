"""Calls with complex arrays, whose parts are read where they are."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import best, program
from tilewright.spaces.errors import InputError

SQUARE = program("x: complex64[i, j]; y[i, j] = x[i, j] * x[i, j]", i=6, j=5)


def drawn() -> np.ndarray:
    generator = np.random.default_rng(0)
    return generator.standard_normal((6, 5, 2)).astype(np.float32).view(np.complex64)[..., 0]


def test_numpy_arrays_are_taken_and_written_in_place():
    x, out = drawn(), np.zeros((6, 5), np.complex64)
    square = best(SQUARE, "cpu", None)
    np.testing.assert_allclose(square(x).view(np.complex64)[..., 0], x * x, rtol=1e-5)
    square(x, out=out)
    np.testing.assert_allclose(out, x * x, rtol=1e-5)


def test_torch_tensors_are_taken_in_place():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(drawn())
    square = best(SQUARE, "cpu", None)
    torch.testing.assert_close(torch.view_as_complex(square(x)), x * x)
    with pytest.raises(InputError, match=r"x is a conjugated view; resolve_conj\(\) gives"):
        square(x.conj())


@pytest.mark.parametrize(
    "change", [lambda x: x.astype(complex), lambda x: x[:3], lambda x: x.real, lambda x: x.T]
)
def test_other_arrays_are_refused(change):
    square = best(SQUARE, "cpu", None)
    with pytest.raises(InputError, match=r"^x (is|has strides) .*; allowed: "):
        square(change(drawn()))
