"""Measure how similar two workloads are, so that records of one can serve the other.

Two texts describe a workload: its family (everything but the extents of its axes) and its extents.
The database keeps both, so that the nearest of thousands is found without making any of them a
workload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.spaces.validation.canonical import canonical_json

if TYPE_CHECKING:
    import numpy as np

    from tilewright.spaces.workloads.workload import Workload


def family(workload: Workload) -> str:
    """Return the dtypes, layouts, epilogue and so on of a workload, as the text of a JSON
    object."""
    return canonical_json(dict(workload.words))


def extents(workload: Workload) -> str:
    """Return the extents of a workload's axes by name, as the text of a JSON object."""
    return canonical_json(dict(workload.extents))


def word_distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """Count the words in which two families differ, including words that only one of them has."""
    return sum(one.get(name) != other.get(name) for name in one.keys() | other.keys())


def size_distance(one: Mapping[str, int], others: Sequence[Mapping[str, int]]) -> np.ndarray:
    """Euclidean distance of a shape to each other, in log2 of their extents: 1.0 is one axis twice
    as long.

    An axis that only one of two has is as long as 1 in the other.
    """
    import numpy as np

    names = sorted(set(one).union(*others))
    shapes = (one, *others)
    sizes = [[shape.get(name, 1) for shape in shapes] for name in names]
    logarithms = np.log2(np.array(sizes, dtype=np.float64).reshape(len(names), len(shapes)))
    return np.linalg.norm(logarithms[:, 1:] - logarithms[:, :1], axis=0)
