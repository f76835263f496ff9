from dataclasses import replace

import numpy as np
import pytest

from tilewright.measure.drawing.products import ProductInputs, _axes_flipped_in
from tilewright.spaces.numerics.allowance import agrees, allowed
from tilewright.spaces.operators import workload

WORKLOADS = [
    {"m": 7, "n": 5, "k": 9},
    {"m": 7, "n": 5, "k": 9, "a": "col", "b": "col", "c": "col"},
    {"m": 1, "n": 33, "k": 17, "dtype": "bfloat16", "epilogue": "gelu(x + bias[n]) * scale[]"},
    {"m": 4, "n": 3, "k": 8, "dtype": "float16", "epilogue": "x + residual[m,n]"},
    {"m": 6, "n": 4, "k": 5, "dtype": "float64"},
    {"m": 6, "n": 4, "k": 5, "dtype": "int8"},
    {"m": 6, "n": 4, "k": 5, "dtype": "float8_e4m3fn"},
]


@pytest.mark.parametrize("parameters", WORKLOADS)
def test_the_reference_fits_the_inputs(parameters):
    work = workload("matmul", **parameters)
    source = ProductInputs(work, 1)
    for seed in range(5):
        draw = source.draw(seed)
        low, high = draw.allowed()[work.outputs[0].name]
        assert low.shape == high.shape == work.outputs[0].shape
        sums = work.matmul.contract(draw.inputs)
        for found, exact in zip((low, high), allowed(work.matmul, sums, draw.inputs), strict=True):
            np.testing.assert_allclose(found, exact, rtol=1e-6)
        rounded = work.outputs[0].element.cast(work.matmul.reference(draw.inputs))
        assert agrees(rounded, low, high).all()


@pytest.mark.parametrize("parameters", WORKLOADS)
def test_inputs_keep_dtype_and_shape_and_change_with_the_seed(parameters):
    work = workload("matmul", **parameters)
    source = ProductInputs(work, 1)
    first, second = source.draw(1).inputs, source.draw(2).inputs
    for operand in work.inputs:
        assert first[operand.name].dtype == operand.element.numpy
        assert first[operand.name].shape == operand.shape
        assert (np.abs(first[operand.name]) == np.abs(second[operand.name])).all()
    assert any((first[o.name] != second[o.name]).any() for o in work.matmul.factors)
    lows = [source.draw(seed).allowed()[work.outputs[0].name][0] for seed in range(1, 6)]
    assert any((low != lows[0]).any() for low in lows)


def test_rows_columns_and_terms_flip_independently():
    work = workload("matmul", m=40, n=50, k=60)
    inputs, base = (ProductInputs(work, 1).draw(seed).inputs for seed in (3, 4))
    for name in "AB":
        flipped = np.sign(inputs[name]) != np.sign(base[name])
        rows = np.logical_xor(flipped, flipped[0])
        assert 0.2 < flipped.mean() < 0.8
        assert (rows == rows[:, :1]).all(), "a product of signs of rows and of columns"
        assert 0 < rows[:, 0].sum() < len(rows)


def test_a_reduction_over_one_operand_alone_keeps_its_signs():
    """Nothing would take back what they do to the sums."""
    work = workload("matmul", m=4, n=3, k=8).matmul
    left, right = work.factors
    assert _axes_flipped_in(left, work) == ["m", "k"]
    assert _axes_flipped_in(right, work) == ["n", "k"]
    assert _axes_flipped_in(left, replace(work, factors=(left,))) == ["m"]
