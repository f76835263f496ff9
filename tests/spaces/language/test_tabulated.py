"""What stands in for a function's reference is as good where intervals are concerned."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.tabulated import END, STEPS, tabulated_gelu

QUICK = sorted(name for name, function in FUNCTIONS.items() if function.quick)


def points() -> np.ndarray:
    """Points of the table and those half way between, random ones, and those beyond the table."""
    steps = np.arange(-2 * END * STEPS - 3, 2 * END * STEPS + 3) / (2 * STEPS)
    generator = np.random.default_rng(0)
    large = 10.0 ** generator.uniform(-300, 300, 1000)
    return np.concatenate([steps, generator.normal(size=200_000) * 4, large, -large])


def test_gelu_is_off_by_no_more_than_it_says() -> None:
    x = points()
    error = np.abs(tabulated_gelu(x) - FUNCTIONS["gelu"].reference(x))
    assert (error <= 2e-11 + 1e-15 * np.abs(x)).all()
    assert error.max() > 1e-11  # or it could say less


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_function_is_off_by_a_thousandth_of_what_code_may_be(name: str) -> None:
    function, x = FUNCTIONS[name], points()
    assert function.quick is not None
    exact = function.reference(x)
    relative, absolute = function.error
    error = np.abs(function.quick(x) - exact)
    assert (error <= (relative * np.abs(exact) + absolute) / 1000).all()


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_function_of_no_number_and_of_infinities_is_the_reference(name: str) -> None:
    function, x = FUNCTIONS[name], np.array([np.nan, np.inf, -np.inf, 0.0])
    assert function.quick is not None
    with np.errstate(all="raise"):
        np.testing.assert_allclose(function.quick(x), function.reference(x), rtol=0, atol=1e-17)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_a_quick_function_keeps_the_shape(name: str, shape: tuple[int, ...]) -> None:
    function, x = FUNCTIONS[name], np.full(shape, 0.3)
    assert function.quick is not None
    assert function.quick(x).shape == shape
    assert (x == 0.3).all()
