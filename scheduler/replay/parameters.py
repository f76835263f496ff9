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

    The product and the ratio of each two parameters, as base-2 logarithms: a kernel's work, its
    blocks and what divides them are such, whatever they are called. Of a switch or a word its place
    among its values, from 1, counts: so a single feature tells for which sizes it is good.
    ``domains`` holds the values that each parameter has, ``columns`` those of the configurations.
    """
    logarithms = {
        name: np.log2(_size(values, np.asarray(columns[name]))) for name, values in domains.items()
    }
    quantities = {}
    for (first, a), (second, b) in combinations(logarithms.items(), 2):
        quantities[f"product.{first}.{second}"] = a + b
        quantities[f"ratio.{first}.{second}"] = a - b
    return quantities


def _size(values: Sequence[Value], column: np.ndarray) -> np.ndarray:
    """A column of a parameter's ``values`` as sizes."""
    if len(values) >= SIZE_VALUES and all(type(v) is int and v > 0 for v in values):
        return column.astype(np.float64)
    known = np.array(values)
    order = np.argsort(known, kind="stable")
    return order[np.searchsorted(known, column, sorter=order)] + 1.0
