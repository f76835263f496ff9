"""What can be said of a kernel's speed from its parameters, whatever they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from spaces.schedule import Value
from spaces.template import Columns

SIZE_VALUES = 3
"""Positive whole numbers that a parameter has at least, to be taken for a size and no switch."""


def parameter_quantities(
    domains: Mapping[str, Sequence[Value]], columns: Columns
) -> dict[str, np.ndarray]:
    """Features of many configurations, one array each, beside their parameters.

    The product and the ratio of each two sizes, as base-2 logarithms: a kernel's work, its blocks
    and what divides them are such, whatever they are called. ``domains`` holds the values that each
    parameter has, ``columns`` those of the configurations.
    """
    sizes = {
        name: np.log2(np.asarray(columns[name], dtype=np.float64))
        for name, values in domains.items()
        if _is_size(values)
    }
    quantities = {}
    for (first, a), (second, b) in combinations(sizes.items(), 2):
        quantities[f"product.{first}.{second}"] = a + b
        quantities[f"ratio.{first}.{second}"] = a - b
    return quantities


def _is_size(values: Sequence[Value]) -> bool:
    return len(values) >= SIZE_VALUES and all(type(v) is int and v > 0 for v in values)
