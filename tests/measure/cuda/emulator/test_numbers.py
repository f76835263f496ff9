"""Conversions of the emulator against NumPy and ml_dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import kernel, operand, output_of
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.dtypes import dtype

LOOP = "for (int i = threadIdx.x; i < {size}; i += 32) "


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_every_pattern_widens_exactly(emulator, name):
    numpy = dtype(name).numpy
    bits = np.arange(2 ** (8 * numpy.itemsize)).astype(f"u{numpy.itemsize}")
    source = bits.view(numpy)
    body = LOOP.format(size=len(bits)) + "C[i] = tw::to_float(tw::load_global(A + i));"
    out = operand("C", "float32", source.shape)
    result = output_of(
        emulator.run(kernel(f"wide_{name}", body, {"A": source}, out), {"A": source})
    )
    np.testing.assert_array_equal(result, source.astype(np.float32))


def awkward_numbers(numpy: np.dtype) -> np.ndarray:
    """Values of the type, the points half way between neighbours, and their neighbours."""
    bits = np.arange(2 ** (8 * numpy.itemsize - 1) - 1).astype(f"u{numpy.itemsize}")
    values = np.unique(bits.view(numpy).astype(np.float32))
    values = values[np.isfinite(values)]
    middles = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    if len(middles) > 3000:
        middles = middles[:: len(middles) // 3000]
        values = values[:: len(values) // 3000]
    some = np.concatenate([values, middles, np.nextafter(middles, 0), np.nextafter(middles, 1e9)])
    return np.concatenate([some, -some]).astype(np.float32)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrowing_rounds_to_nearest_even(emulator, name):
    numpy = dtype(name).numpy
    source = awkward_numbers(numpy)
    body = LOOP.format(size=len(source))
    body += f"tw::store_global(C + i, tw::from_float<{C_TYPES[name]}>(A[i]));"
    out = operand("C", name, source.shape)
    made = kernel(f"narrow_{name}", body, {"A": source}, out)
    result = output_of(emulator.run(made, {"A": source})).astype(np.float32)
    np.testing.assert_array_equal(result, source.astype(numpy).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "largest"),
    [("float8_e4m3fn", 448), ("float8_e5m2", 57344), ("int8", 127), ("float16", np.inf)],
)
def test_large_numbers_saturate_as_on_the_device(emulator, name, largest):
    source = np.array([1e6, -1e6, np.inf, -np.inf], np.float32)
    body = "if (threadIdx.x < 4) tw::store_global(C + threadIdx.x, "
    body += f"tw::from_float<{C_TYPES[name]}>(A[threadIdx.x]));"
    made = kernel(f"large_{name}", body, {"A": source}, operand("C", name, (4,)))
    result = output_of(emulator.run(made, {"A": source})).astype(np.float32)
    lowest = -128 if name == "int8" else -largest
    np.testing.assert_array_equal(result, [largest, lowest, largest, lowest])


def test_integers_round_to_nearest_even(emulator):
    source = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 126.6, 1e9, -3e9], np.float32)
    body = "if (threadIdx.x < 8) C[threadIdx.x] = tw::from_float<i32>(A[threadIdx.x]);"
    made = kernel("integers", body, {"A": source}, operand("C", "int32", (8,)))
    result = output_of(emulator.run(made, {"A": source}))
    np.testing.assert_array_equal(result, [0, 2, 2, 0, -2, 127, 10**9, -(2**31)])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_pairs_pack_and_unpack(emulator, name):
    source = np.linspace(-3, 3, 64, dtype=np.float32)
    c_type = C_TYPES[name]
    body = f"""
  const u32 pair = tw::pack2<{c_type}>(A[2 * threadIdx.x], A[2 * threadIdx.x + 1]);
  float low, high;
  tw::unpack2<{c_type}>(pair, low, high);
  C[2 * threadIdx.x] = low;
  C[2 * threadIdx.x + 1] = high;"""
    made = kernel(f"pairs_{name}", body, {"A": source}, operand("C", "float32", (64,)))
    result = output_of(emulator.run(made, {"A": source}))
    np.testing.assert_array_equal(result, source.astype(dtype(name).numpy).astype(np.float32))


def test_tf32_keeps_ten_bits_of_fraction(emulator):
    source = np.array([1 + 2**-11, 1 + 2**-12, -1 - 3 * 2**-11, 1e30], np.float32)
    body = "if (threadIdx.x < 4) C[threadIdx.x] = tw::bits_float(tw::to_tf32(A[threadIdx.x]));"
    made = kernel("tf32", body, {"A": source}, operand("C", "float32", (4,)))
    result = output_of(emulator.run(made, {"A": source}))
    assert list(result[:3]) == [1 + 2**-10, 1.0, -1 - 2**-9]  # ties away from zero
    assert abs(result[3] / 1e30 - 1) < 2**-11


def test_powers_of_two_are_near_and_never_subnormal(emulator):
    source = np.concatenate([np.linspace(-130, 127, 300), [-np.inf, np.inf, np.nan]])
    source = source.astype(np.float32)
    body = LOOP.format(size=len(source)) + "C[i] = tw::exp2_approx(tw::load_global(A + i));"
    made = kernel("power", body, {"A": source}, operand("C", "float32", source.shape))
    result = output_of(emulator.run(made, {"A": source}))
    expected = np.exp2(source.astype(np.float64)).astype(np.float32)
    expected[source < -126] = 0
    np.testing.assert_allclose(result, expected, rtol=2**-22)


@pytest.mark.parametrize("lane", [0, 17, 31, 32])
def test_a_vote_tells_every_lane_whether_one_agrees(emulator, lane):
    source = np.zeros(64, np.float32)
    source[lane] = 1
    body = "C[threadIdx.x] = tw::any_lane(tw::load_global(A + threadIdx.x) > 0.f);"
    out = operand("C", "int32", source.shape)
    result = output_of(
        emulator.run(kernel("vote", body, {"A": source}, out, threads=64), {"A": source})
    )
    np.testing.assert_array_equal(result, np.arange(64) // 32 == lane // 32)


def test_reciprocals_are_near(emulator):
    source = np.array([1, -3, 1e30, 1e-30, np.inf, -np.inf, np.nan], np.float32)
    body = LOOP.format(size=len(source)) + "C[i] = tw::reciprocal_approx(tw::load_global(A + i));"
    made = kernel("reciprocal", body, {"A": source}, operand("C", "float32", source.shape))
    result = output_of(emulator.run(made, {"A": source}))
    np.testing.assert_allclose(result, 1 / source, rtol=2**-22)
