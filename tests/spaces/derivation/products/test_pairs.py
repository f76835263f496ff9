"""Pairs of products that share a factor."""

from __future__ import annotations

import pytest

from tilewright.spaces.derivation.products.pairs import pair_in
from tilewright.spaces.language import program
from tilewright.spaces.named import operator

PAIRS = {
    "gated": "y[i,j] = silu(sum[k](a[i,k] * g[k,j])) * sum[k](a[i,k] * u[k,j])",
    "the other way round": "y[i,j] = sum[k](g[k,j] * a[i,k]) * silu(sum[k](u[k,j] * a[i,k]))",
    "along the depth": "y[i,j] = sum[k](a[i,k] * g[j,k]) - sum[k](a[i,k] * u[j,k]) + b[j]",
}
OTHERS = {
    "no left factor in common": "y[i,j] = sum[k](a[i,k] * g[k,j]) * sum[k](c[i,k] * u[k,j])",
    "matrices that lie otherwise": "y[i,j] = sum[k](a[i,k] * g[k,j]) * sum[k](a[i,k] * u[j,k])",
    "sums of other elements": "s[i,j] = sum[k](a[i,k] * g[k,j]); "
    "y[i,j] = s[i,7 - j] * sum[k](a[i,k] * u[k,j])",
    "one product": "y[i,j] = silu(sum[k](a[i,k] * g[k,j]))",
    "two outputs": "s[i,j] = sum[k](a[i,k] * g[k,j]); y[i,j] = sum[k](a[i,k] * u[k,j]); -> s, y",
    "a reduction between": "y[i,j] = sum[k](a[i,k] * g[k,j]) / sum[k](a[i,k] * a[i,k])",
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_products_with_a_factor_in_common_are_a_pair(name):
    found = pair_in(program(PAIRS[name], i=6, j=8, k=8))
    assert not isinstance(found, str)
    factors = {found.product.right.operand.name, found.twin.operand.name}
    assert factors == {"g", "u"}
    assert found.product.left.operand.name == "a"
    assert found.other not in found.product.places


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_none(name):
    assert "needs two products" in str(pair_in(program(OTHERS[name], i=6, j=8, k=8)))


def test_a_named_operator_is_one():
    assert not isinstance(pair_in(operator("gated_matmul", m=4, n=5, k=6)), str)
