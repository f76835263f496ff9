"""Inputs must be such that a wrong kernel shows; where none can, a workload is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.drawing.draw import fresh_inputs, one_draw
from tilewright.measure.drawing.product_sensitivity import Sums, _coarse, is_sensitive, sensitivity
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.allowance import agrees, allowed
from tilewright.spaces.operators import workload

ORDINARY = [
    "",
    "relu(x)",
    "max(x, 0)",
    "gelu(x + bias[n]) * scale[] + r[m, n]",
    "tanh(x)",
    "min(max(x, 0), 6)",
    "exp(x - 20)",
    "sigmoid(x - 30)",
    "x * 1e-30",
    "x * rsqrt(v[n])",
    "bfloat16(x)",
    "x + 0 * b[n]",
]


def product(k=64, m=64, n=64, **parameters):
    return workload("matmul", m=m, n=n, k=k, **parameters)


@pytest.mark.parametrize("epilogue", ORDINARY)
@pytest.mark.parametrize("k", [1, 8, 512])
def test_ordinary_workloads_are_drawn_as_ever(epilogue, k):
    assert sensitivity(product(k, epilogue=epilogue).matmul).scale == 1.0


@pytest.mark.parametrize("dtype", ["float64", "tfloat32", "float16", "bfloat16", "int8", "int32"])
def test_ordinary_workloads_of_all_dtypes_are_drawn_as_ever(dtype):
    assert sensitivity(product(dtype=dtype, epilogue="relu(x)").matmul).scale == 1.0
    assert sensitivity(product(dtype=dtype).matmul).is_sure(product(dtype=dtype).matmul)


@pytest.mark.parametrize("epilogue", ["relu(x - 1000)", "max(x, 2000) - 2000", "x * 1e-38"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "float8_e4m3fn"])
def test_what_hides_usual_sums_is_drawn_from_another_range(epilogue, dtype):
    work = product(256, dtype=dtype, out="float32", epilogue=epilogue)
    draw = one_draw(work, 1)
    inputs, scale = draw.inputs, draw.scale
    assert scale > 1 or dtype == "int8"
    low, high = allowed(work.matmul, work.matmul.contract(inputs), inputs, scale)
    assert not agrees(np.zeros(work.outputs[0].shape), low, high).all()
    half = {"A": inputs["A"][:, :128], "B": inputs["B"][:128]}
    wrong = work.matmul.reference(half)
    assert not agrees(wrong, low, high).all()


def test_what_lacks_half_of_the_terms_is_the_sum_of_the_others():
    work = product(64, 4, 4).matmul
    inputs = work.make_inputs(1)
    found = {m.name: m.sums for m in _coarse(work, Sums.of(work, inputs))}
    first, second = (
        work.contract({"A": inputs["A"][:, half], "B": inputs["B"][half]})
        for half in (slice(0, 32), slice(32, 64))
    )
    np.testing.assert_allclose(found["first half left out"], second, rtol=1e-9)
    np.testing.assert_allclose(found["second half left out"], first, rtol=1e-9)


def test_float16_sums_are_drawn_as_large_as_they_have_room_for():
    work = product(16, dtype="float16", accumulator="float16", epilogue="relu(x - 2000)")
    assert sensitivity(work.matmul).scale == 2.0**14 / 16


@pytest.mark.parametrize("epilogue", ["x * 0 + b[n]", "sigmoid(x * 0)", "relu(0 - x * x) + 1"])
def test_a_workload_that_no_inputs_can_tell_of_is_refused_in_a_sentence(epilogue):
    with pytest.raises(InputError, match="cannot be verified: whatever its inputs, its output"):
        sensitivity(product(epilogue=epilogue).matmul)
    with pytest.raises(InputError, match="cannot be verified"):
        fresh_inputs(product(epilogue=epilogue), 1)


def test_an_output_that_can_hold_nothing_but_zeros_is_refused():
    with pytest.raises(InputError, match="cannot be verified"):
        sensitivity(product(dtype="float16", epilogue="x * 1e-30").matmul)


@pytest.mark.parametrize(
    "parameters",
    [
        {"m": 1, "n": 1, "k": 30, "epilogue": "relu(x)"},
        {"m": 1, "n": 2, "k": 30, "epilogue": "relu(x - 30)"},
        {"m": 100, "n": 90, "k": 7, "epilogue": "x * rsqrt(variance[])"},
        {"m": 2, "n": 1, "k": 1, "dtype": "int8", "epilogue": "relu(x)"},
    ],
)
def test_every_draw_of_few_elements_tells(parameters):
    work = workload("matmul", **parameters)
    fresh = fresh_inputs(work, 1)
    for seed in range(20):
        draw = fresh.draw(seed)
        assert is_sensitive(work.matmul, draw.inputs, draw.scale)
        zeros = np.zeros(work.outputs[0].shape)
        assert not agrees(zeros, *draw.allowed()[work.outputs[0].name]).all()
