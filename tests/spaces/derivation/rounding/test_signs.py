"""Differences that rounding cannot make negative, and others."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.language import program
from tilewright.spaces.language.inputs import draw

SIZES = {"r": 8, "c": 100}
POSITIVE = {
    "greatest": "m[r] = max[c](x[r,c] * x[r,c]); y[r,c] = sqrt(m[r] - x[r,c] * x[r,c])",
    "least": "m[c] = min[r](x[r,c] * z[c]); y[r,c] = rsqrt(x[r,c] * z[c] - m[c])",
    "of a stage": "s[r,c] = x[r,c] * z[c]; m[r] = max[c](s[r,c]); y[r,c] = log(m[r] - s[r,c])",
}
OTHERS = {
    "of something else": "m[r] = max[c](x[r,c] * x[r,c]); y[r,c] = sqrt(m[r] - x[r,c] * z[c] * 4)",
    "of another row": "m[r] = max[c](x[r,c] * z[c]); y[r,c] = sqrt(m[7 - r] - x[r,c] * z[c])",
    "of the others": "where c > 0; m[r] = max[c](x[r,c] * z[c]); "
    "y[r,q] = sqrt(m[r] - x[r,q] * z[q])",
    "turned": "m[r] = max[c](x[r,c] * z[c]); y[r,c] = sqrt(x[r,c] * z[c] - m[r])",
}


def bounds(text: str) -> tuple[np.ndarray, np.ndarray]:
    extents = SIZES | ({"q": 100} if "[r,q]" in text else {})
    made = program(text, **extents)
    return allowed(made, draw(made, 1))["y"]


@pytest.mark.parametrize("name", POSITIVE)
def test_no_root_of_them_is_nan(name: str) -> None:
    low, high = bounds(POSITIVE[name])
    assert not np.isnan(low).any()
    assert not ((low == -np.inf) & (high == np.inf)).any()


@pytest.mark.parametrize("name", OTHERS)
def test_roots_of_others_may_be_nan(name: str) -> None:
    low, high = bounds(OTHERS[name])
    assert (np.isnan(low) | ((low == -np.inf) & (high == np.inf))).any()
