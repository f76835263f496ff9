"""How alike two workloads are, so that what is known of one can serve the other."""

from __future__ import annotations

import math

from spaces.workload import Workload


def distance(first: Workload, second: Workload) -> tuple[int, float]:
    """How far apart two workloads of one operator are; compares as it stands.

    First the number of words they differ in (dtypes, layouts, epilogue), then the Euclidean
    distance of their shapes in log2 of the extents: 1.0 is one axis twice as long.
    """
    words = [
        one != other
        for one, other in zip(first.parameters, second.parameters, strict=True)
        if isinstance(one[1], str)
    ]
    ratios = (math.log2(axis.extent / second.extents[axis.name]) for axis in first.axes)
    return sum(words), math.hypot(*ratios)
