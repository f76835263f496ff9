"""Quantities of a kernel that follow from its parameters alone, whatever they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from tilewright.costmodel.sizes import is_size, odd_part
from tilewright.spaces.schedule import Value
from tilewright.spaces.template import Columns


def parameter_quantities(
    domains: Mapping[str, Sequence[Value]], columns: Columns
) -> dict[str, np.ndarray]:
    """Return the features of many configurations, one array each, beside their parameters.

    The product and the ratio of each two sizes, as base-2 logarithms: a kernel's work, its blocks
    and what divides them are such, whatever they are called. And the odd part of each size and of
    each product of two: caches, banks and problems come in powers of two, and a size that is none
    leaves a rest in them. ``domains`` holds the values that each parameter has, ``columns`` those
    of the configurations.
    """
    sizes = {
        name: np.asarray(columns[name], dtype=np.int64)
        for name, values in domains.items()
        if is_size(values)
    }
    size = {name: np.log2(values) for name, values in sizes.items()}
    odd = {
        name: np.log2(odd_part(values))
        for name, values in sizes.items()
        if (odd_part(np.array(domains[name], dtype=np.int64)) > 1).any()
    }
    quantities = {f"odd.{name}": rest for name, rest in odd.items()}
    for first, second in combinations(odd, 2):
        quantities[f"odd.{first}.{second}"] = odd[first] + odd[second]
    for first, second in combinations(size, 2):
        quantities[f"product.{first}.{second}"] = size[first] + size[second]
        quantities[f"ratio.{first}.{second}"] = size[first] - size[second]
    return quantities
