"""Count or enumerate all schedules that keep the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.spaces.space.points import Points, Population
from tilewright.spaces.space.validity import Step, Validity


def blocks(points: Points, validity: Validity, limit: int) -> Iterator[Population]:
    """Yield every valid row once, in populations of bounded size.

    Partial rows grow one decision at a time and rules prune as soon as they can be judged;
    a partial population that grows past ``limit`` is halved and its halves follow in turn.
    """
    for t in range(len(points.template_names)):
        start = np.zeros((1, points.width), dtype=np.int32)
        start[0, 0] = t
        yield from _expand(points, validity, start, validity.steps(t, None), limit)


def _expand(
    points: Points,
    validity: Validity,
    partial: Population,
    steps: Sequence[Step],
    limit: int,
) -> Iterator[Population]:
    """Yield the valid rows that grow from ``partial`` ones by the remaining ``steps``."""
    if not len(partial):
        return
    if not steps:
        yield partial
        return
    step, *rest = steps
    size = int(points.sizes[step.column])
    if len(partial) * size > limit and len(partial) > 1:
        middle = len(partial) // 2
        yield from _expand(points, validity, partial[:middle], steps, limit)
        yield from _expand(points, validity, partial[middle:], steps, limit)
        return
    rows, values = np.nonzero(validity.allowed(partial, step))
    grown = partial[rows]
    grown[:, step.column] = values
    yield from _expand(points, validity, grown, rest, limit)
