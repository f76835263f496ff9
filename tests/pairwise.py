"""Parameters of which every pair of values occurs, and not every combination."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest

from tests.covering import chosen


def pairwise(*factors: Sequence[Any]) -> list[Any]:
    """All combinations of the factors' values, of which those are slow tests that have no pair of
    values which is in none of the others.

    A mistake in how two choices go together shows in one of the others already. A value may be a
    tuple, for several parameters.
    """
    rows = list(product(*(range(len(factor)) for factor in factors)))
    quick = set(chosen({row: combinations(enumerate(row), 2) for row in rows}))
    return [
        pytest.param(*_values(row, factors), marks=() if row in quick else pytest.mark.slow)
        for row in rows
    ]


def _values(row: Sequence[int], factors: Sequence[Sequence[Any]]) -> list[Any]:
    values = [factor[place] for factor, place in zip(factors, row, strict=True)]
    return [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
