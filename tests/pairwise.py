"""Parameters of which every pair of values occurs, and not every combination."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest


def pairwise(*factors: Sequence[Any]) -> list[Any]:
    """All combinations of the factors' values, of which those are slow tests that have no pair of
    values which is in none before them.

    A mistake in how two choices go together shows in one of the others already. A value may be a
    tuple, for several parameters.
    """
    wanted = {
        ((i, a), (j, b))
        for (i, first), (j, second) in combinations(enumerate(factors), 2)
        for a, b in product(range(len(first)), range(len(second)))
    }
    rest = list(product(*(range(len(factor)) for factor in factors)))
    chosen = []
    while wanted:
        best = max(rest, key=lambda row: len(_pairs(row) & wanted))
        wanted -= _pairs(best)
        rest.remove(best)
        chosen.append(best)
    quick = [pytest.param(*_values(row, factors)) for row in sorted(chosen)]
    slow = [pytest.param(*_values(row, factors), marks=pytest.mark.slow) for row in rest]
    return quick + slow


def _pairs(row: Sequence[int]) -> set[tuple[tuple[int, int], ...]]:
    return set(combinations(enumerate(row), 2))


def _values(row: Sequence[int], factors: Sequence[Sequence[Any]]) -> list[Any]:
    values = [factor[place] for factor, place in zip(factors, row, strict=True)]
    return [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
