import numpy as np
import pytest

from tilewright.spaces.dtypes import ALSO_CALLED, DTYPES, dtype
from tilewright.spaces.errors import InputError

FLOATS = [name for name, d in DTYPES.items() if not d.is_integer]


@pytest.mark.parametrize("name", FLOATS)
def test_values_between_one_and_two_are_rounded_to_whole_epsilons(name: str) -> None:
    values = 1 + np.random.default_rng(0).random(1000)
    steps = (dtype(name).cast(values).astype(np.float64) - 1) / dtype(name).epsilon
    np.testing.assert_array_equal(steps, np.round(steps))
    assert np.abs(steps - (values - 1) / dtype(name).epsilon).max() <= 0.5


def test_tfloat32_keeps_what_is_no_number_and_rounds_ties_away() -> None:
    unit = 2.0**-10
    values = [np.inf, -np.inf, np.nan, 1 + unit / 2, -1 - unit / 2, 1 + 3 * unit / 2]
    rounded = [np.inf, -np.inf, np.nan, 1 + unit, -1 - unit, 1 + 2 * unit]
    np.testing.assert_array_equal(dtype("tfloat32").cast(np.array(values)), rounded)


@pytest.mark.parametrize("name", ALSO_CALLED)
def test_the_nearest_dtype_is_named(name):
    with pytest.raises(InputError, match=f"unknown dtype '{name}'; did you mean") as raised:
        dtype(name)
    assert ALSO_CALLED[name] in DTYPES
    assert str(raised.value).endswith(f"{ALSO_CALLED[name]}?")
