"""Sizes that are found among a kernel's decisions whatever their names are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.spaces.schedule import Value
from tilewright.spaces.space import Population, Space

SIZE_VALUES = 3
"""Positive whole numbers that a decision has at least, to be taken for a size and no switch."""

REST = 0.15
"""The part of its speed that a kernel is expected to lose by its largest size leaving a rest."""


def is_size(values: Sequence[Value]) -> bool:
    """Return True if a decision with these values is a size."""
    return len(values) >= SIZE_VALUES and all(type(v) is int and v > 0 for v in values)


def odd_part(values: np.ndarray) -> np.ndarray:
    """The odd part of positive whole numbers: all factors of two are divided out."""
    odd: np.ndarray = values // (values & -values)
    return odd


def evenness(space: Space, population: Population) -> np.ndarray:
    """Say how little speed each schedule is expected to lose by its sizes: 1.0 if it is none.

    Problems, warps, banks and lines of caches come in powers of two. A size that is none leaves a
    rest in them, up to the size itself: so it costs ``REST`` times its logarithm, in those of the
    template's largest size.
    """
    columns = space.decision_columns(population)
    kept = np.ones(len(population))
    for name, template in space.templates.items():
        sizes = {d.name: max(d.values) for d in template.decisions if is_size(d.values)}
        for decision in sizes:
            size = np.nan_to_num(columns[f"{name}.{decision}"], nan=1.0).astype(np.int64)
            lost = REST * np.log2(size) / np.log2(max(sizes.values()))
            kept *= np.where(odd_part(size) > 1, 1.0 - lost, 1.0)
    return kept
