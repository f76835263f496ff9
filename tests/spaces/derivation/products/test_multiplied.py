"""The dtypes in which programs multiply matrices."""

from __future__ import annotations

import pytest

from tilewright.spaces.derivation.products.multiplied import multiplied_dtypes
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload


@pytest.mark.parametrize(
    ("text", "dtypes"),
    [
        ("c: int8; y[i,j] = sum[k](a[i,k] * b[k,j]) + sum[k](a[i,k] * c[k,j])",
         ("bfloat16", "int8")),
        ("y[i,j] = sum[k](a[i,k] * rsqrt(sum[k](a[i,k] * a[i,k])) * b[k,j])", ("bfloat16",)),
        ("y[i] = max[j](sum[k](a[i,k] * b[k,j]))", ("bfloat16",)),
        ("y[i,j] = sum[k](exp(a[i,k] - max[k](a[i,k])) * b[k,j])", ()),
        ("y[i,j] = sum[k](a[i,j,k] * a[i,j,k])", ()),
        ("y[i,j,k] = a[i,j,k] * 2", ()),
    ],
)  # fmt: skip
def test_they_are_those_of_the_operands_that_are_multiplied(text, dtypes):
    assert multiplied_dtypes(program(text, dtype="bfloat16", i=4, j=5, k=6)) == dtypes


def test_estimates_know_in_what_several_products_multiply():
    assert workload("gated_matmul m=8 n=8 k=8 dtype=float16").arithmetic == ("float16",)
    assert workload("softmax r=8 c=8 dtype=float16").arithmetic == ("float32",)
