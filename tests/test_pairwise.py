"""Tests of parameters by pairs."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.pairwise import pairwise


@pytest.mark.parametrize(
    ("factors", "most"),
    [(("ab", "cd"), 4), (("ab", "cd", "ef"), 5), (("ab", "cd", "ef", "ghi"), 8), (("ab",), 0)],
)
def test_every_pair_occurs_in_few_combinations_and_the_rest_is_slow(factors, most):
    found = pairwise(*factors)
    assert sorted(p.values for p in found) == sorted(product(*factors))
    quick = [p.values for p in found if not p.marks]
    assert len(quick) <= most
    for i, j in combinations(range(len(factors)), 2):
        assert {(row[i], row[j]) for row in quick} == set(product(factors[i], factors[j]))


def test_a_tuple_is_several_parameters():
    assert pairwise([(1, 2)], [3])[0].values == (1, 2, 3)
