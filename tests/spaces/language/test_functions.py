"""References of functions that C's library has are what it computes, infinities included."""

from __future__ import annotations

import ctypes
import ctypes.util
from itertools import product

import numpy as np
import pytest

from tilewright.spaces.language.functions import FUNCTIONS

VALUES = (-np.inf, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.25, np.inf, np.nan)
LIBRARY = {name: each for name, each in FUNCTIONS.items() if each.library}


@pytest.mark.parametrize("name", LIBRARY)
def test_references_are_what_the_library_computes(name):
    function = LIBRARY[name]
    called = getattr(ctypes.CDLL(ctypes.util.find_library("m")), function.library)
    called.restype, called.argtypes = ctypes.c_double, [ctypes.c_double] * function.arity
    for last in VALUES:
        points = np.array([(*first, last) for first in product(VALUES, repeat=function.arity - 1)])
        given = points.T if function.arity == 1 else [*points.T[:-1], np.float64(last)]
        with np.errstate(all="ignore"):
            found = np.broadcast_to(function.reference(*given), len(points))
        wanted = [called(*point) for point in points]
        np.testing.assert_allclose(found, wanted, rtol=1e-14, err_msg=f"{last}")
