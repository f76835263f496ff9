"""The tables of values of element types of up to 8 bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.low_bit.codes import codes_of, values_of_codes

IN_ML_DTYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("u", "") for bits in (1, 2, 4)},
    "float4_e2m1": "float4_e2m1fn",
    "float6_e2m3": "float6_e2m3fn",
    "float6_e3m2": "float6_e3m2fn",
    "float8_e3m4": "float8_e3m4",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float8_e8m0": "float8_e8m0fnu",
}
OTHERS = ("uint3", "uint7", "uint8", "int3", "int5", "int8", "float2_e1m0", "float5_e2m2")
ALL = (*IN_ML_DTYPES, *OTHERS)


@pytest.mark.parametrize(("name", "other"), IN_ML_DTYPES.items())
def test_values_are_those_of_ml_dtypes(name, other):
    bits = dtype(name).bits
    known = np.arange(2**bits, dtype=np.uint8).view(getattr(ml_dtypes, other))
    np.testing.assert_array_equal(dtype(name).values, known.astype(np.float64))


@pytest.mark.parametrize("name", ALL)
def test_each_value_has_its_code(name):
    element = dtype(name)
    codes = np.arange(2**element.bits, dtype=np.uint8)
    values = values_of_codes(codes, name)
    np.testing.assert_array_equal(values.astype(np.float64), element.values)
    found = codes_of(values.astype(np.float64), name)
    np.testing.assert_array_equal(element.values[found], element.values)
    numbers = ~np.isnan(element.values)
    assert (found[numbers] == codes[numbers]).all()


def test_splits_of_fewer_than_8_bits_have_finite_values_alone():
    for name in ("float3_e1m1", "float5_e3m1", "float7_e2m4", "float7_e6m0"):
        values = dtype(name).values
        assert np.isfinite(values).all()
        assert len(np.unique(abs(values))) == len(values) // 2


def test_whole_numbers_reach_from_end_to_end():
    for bits in range(1, 8):
        assert dtype(f"uint{bits}").limits == (0, 2**bits - 1)
        assert dtype(f"int{bits}").limits == (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        assert dtype(f"int{bits}").values.min() == dtype(f"int{bits}").limits[0]


def test_an_element_of_a_few_bits_has_no_bytes():
    with pytest.raises(ValueError, match="ask the array"):
        dtype("uint4").bytes  # noqa: B018
    assert dtype("float8_e8m0").bytes == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("uint9", "uint1 to uint8"),
        ("int0", "int1 to int8"),
        ("float6_e2m2", "B = 1 [+] E [+] M"),
        ("float9_e4m4", "B = 1 [+] E [+] M"),
        ("float4_e3m1", "B = 1 [+] E [+] M"),
        ("float8_e4m3", "did you mean float8_e4m3fn"),
        ("uint", "did you mean"),
    ],
)
def test_what_does_not_exist_is_said(name, said):
    with pytest.raises(InputError, match=said) as raised:
        dtype(name)
    assert len(str(raised.value)) <= 200


def test_values_that_are_none_are_refused():
    with pytest.raises(InputError, match=r"0\.25 is no value of float4_e2m1; allowed: -6, "):
        codes_of(np.array([0.5, 0.25]), "float4_e2m1")
    with pytest.raises(InputError, match="8 is no value of int4"):
        codes_of(np.array([[7, 8]]), "int4")
    with pytest.raises(InputError, match="the code 8 of uint3; allowed: 0 to 7"):
        codes_of(np.array([7, 8], np.uint8), "uint3")


def test_coded_floats_round_to_the_nearest():
    found = dtype("float4_e2m1").cast(np.array([0.2, 0.3, 2.4, 5.5, 100, -1e9, np.nan]))
    np.testing.assert_array_equal(found, [0, 0.5, 2, 6, 6, -6, 0])
