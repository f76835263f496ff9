"""How alike two workloads are, so that what is known of one can serve the other."""

from __future__ import annotations

import math

from spaces.workload import Workload


def distance(first: Workload, second: Workload) -> tuple[int, float]:
    """How far apart two workloads of one operator are; compares as it stands.

    First the number of words they differ in (dtypes, layouts, epilogue), a word that only one of
    them has included; then the Euclidean distance of their shapes in log2 of the extents: 1.0 is
    one axis twice as long.
    """
    one, other = _words(first), _words(second)
    different = sum(one.get(name) != other.get(name) for name in one.keys() | other.keys())
    ratios = (math.log2(axis.extent / second.extents[axis.name]) for axis in first.axes)
    return different, math.hypot(*ratios)


def _words(workload: Workload) -> dict[str, str]:
    return {name: value for name, value in workload.parameters if isinstance(value, str)}
