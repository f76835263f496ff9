"""Find reductions over prefixes, and compute them in time that is linear in their length.

    y[r,i] = sum[j: j <= i](x[r,j])

The terms of such a reduction, a sum, product, maximum or minimum, do not depend on the axis ``i``
that ends it, so each result is the one before and a term more. Where all terms from ``i`` on are
reduced, it goes over a suffix, walked backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from tilewright.spaces.language.functions import REDUCERS, neutral
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import MIRRORED, AxisValue

BLOCK = 64
"""Terms that the reference adds up one after the other: blocks are joined like a tree."""


@dataclass(frozen=True)
class Prefix:
    """For each value of the axis ``row``, the values of the axis ``term`` before it, or, if
    ``backwards``, behind it; the equal one is among them unless they are ``exclusive``. ``reducer``
    joins their terms."""

    row: str
    term: str
    backwards: bool
    exclusive: bool
    reducer: str = "sum"

    def reduced(self, terms: np.ndarray, grid: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return what the prefixes of all rows of the ``grid`` reduce to.

        ``terms`` are of shapes that broadcast with the grid's axes, of which ``term`` is the last
        and has all its values; they are alike along ``row``. The result has the axes but ``term``.
        """
        *kept, _ = grid
        shape = [1 if axis == self.row else values.size for axis, values in grid.items()]
        every = np.broadcast_to(terms, shape)
        every = every[..., ::-1] if self.backwards else every
        nothing = neutral(REDUCERS[self.reducer], every.dtype)
        none = np.full((*every.shape[:-1], 1), nothing, every.dtype)
        results = np.concatenate([none, RUNNING[self.reducer](every)], axis=-1)
        found = results[..., self._counts(grid[self.row].ravel(), every.shape[-1])]
        row = kept.index(self.row)
        return np.moveaxis(np.squeeze(found, row), -1, row)

    def _counts(self, rows: np.ndarray, terms: int) -> np.ndarray:
        """Return how many terms are added for each row."""
        counts = (terms - rows if self.backwards else rows + 1) - int(self.exclusive)
        return np.clip(counts, 0, terms)


@lru_cache(maxsize=256)
def prefix_of(program: Program, stage: Stage) -> Prefix | None:
    """Return the prefixes that a reduction goes over; None if there are none, or if its terms
    depend on the axis that ends them."""
    found = _compared(program, stage)
    if found is None or len(stage.over) > 1 or found.row in stage.body.axes:
        return None
    return found


def compared(program: Program, stage: Stage) -> Prefix | None:
    """Return the prefixes that a sum is over, whatever its terms depend on; None if there are
    none."""
    return _compared(program, stage) if stage.reducer == "sum" else None


def _compared(program: Program, stage: Stage) -> Prefix | None:
    match stage.reducer, program.bounding(stage):
        case str(reducer), (condition,) if reducer in RUNNING:
            pass
        case _:
            return None
    operator = condition.operator
    match condition.left, condition.right:
        case AxisValue(term), AxisValue(row) if term in stage.over:
            pass
        case AxisValue(row), AxisValue(term) if term in stage.over:
            operator = MIRRORED[operator]
        case _:
            return None
    if operator not in ("<", "<=", ">", ">=") or row not in stage.axes:
        return None
    return Prefix(row, term, operator.startswith(">"), not operator.endswith("="), reducer)


def running_sums(terms: np.ndarray) -> np.ndarray:
    """Return the sums of the first, the first two, and so on, along the last dimension.

    Each is the sum of its terms alone, as accurate as a sum of blocks.
    """
    count = terms.shape[-1]
    if count <= BLOCK:
        return np.cumsum(terms, axis=-1)
    missing = -count % BLOCK
    padded = np.concatenate([terms, np.zeros((*terms.shape[:-1], missing), terms.dtype)], axis=-1)
    within = np.cumsum(padded.reshape(*terms.shape[:-1], -1, BLOCK), axis=-1)
    within[..., 1:, :] += running_sums(within[..., -1])[..., :-1, None]
    return within.reshape(padded.shape)[..., :count]


RUNNING: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "sum": running_sums,
    "prod": partial(np.cumprod, axis=-1),
    "max": partial(np.maximum.accumulate, axis=-1),
    "min": partial(np.minimum.accumulate, axis=-1),
}
"""The results of the first, the first two, and so on, along the last dimension, by reducers."""


def divided_axis(program: Program, stage: Stage, sizes: Mapping[str, int]) -> int:
    """Return the place of the longest axis of a stage, along which it is evaluated in pieces: one
    that ends prefixes would have all terms in each piece."""
    prefix = prefix_of(program, stage)
    return max(
        range(len(stage.axes)),
        key=lambda place: (
            prefix is None or stage.axes[place] != prefix.row,
            sizes[stage.axes[place]],
        ),
        default=0,
    )


def axes_of_points(program: Program, stage: Stage) -> tuple[str, ...]:
    """Return the axes of all points at which a stage has terms: of a sum over prefixes, without the
    axis that ends these."""
    prefix = prefix_of(program, stage)
    axes = (*stage.axes, *stage.over)
    return axes if prefix is None else tuple(axis for axis in axes if axis != prefix.row)
