"""Operands in slices that rows of a program read each by itself, so that one draw has edges of
several kinds side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.spaces.derivation.rounding.rows import Places, reads, row_axes
from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.language.tree import AxisValue

Kind = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Makes other values of those of slices, each a row of a float64 array."""
TURNS = 3
"""Draws at most that slices take turns in to have all kinds."""


@dataclass(frozen=True)
class Slices:
    """An operand, and its dimensions ``along`` which slices lie."""

    operand: Operand
    along: tuple[int, ...]

    def count(self, places: Places | None = None) -> int:
        """Count the slices that lie at ``places``, by default all."""
        known = places or {}
        return prod(len(known[d]) if d in known else self.operand.shape[d] for d in self.along)

    def changed(
        self,
        values: np.ndarray,
        kinds: Sequence[Kind],
        first: int,
        generator: np.random.Generator,
        places: Places | None = None,
    ) -> np.ndarray:
        """Return the operand's ``values`` with a kind for each slice, in turn from the ``first``
        on; when all have had their turn, in another order. Slices that lie at none of the
        ``places`` are left as they are.
        """
        others = tuple(d for d in range(values.ndim) if d not in self.along)
        order = (*self.along, *others)
        known = [(places or {}).get(d, np.arange(values.shape[d])) for d in self.along]
        chosen = np.ix_(*known)
        found = self.operand.array(values.copy())
        wide = found.transpose(order)[chosen].astype(np.float64)
        flat = wide.reshape(prod(map(len, known)), -1)
        number = np.arange(len(flat))
        number = (number + number // len(kinds) * (first + 1) + first) % len(kinds)
        with np.errstate(all="ignore"):
            for place, kind in enumerate(kinds):
                if (number == place).any():
                    flat[number == place] = kind(flat[number == place], generator)
            found.transpose(order)[chosen] = self.operand.element.cast(flat.reshape(wide.shape))
        return found


def slices(program: Program, whole: bool = False) -> list[Slices]:
    """List the slices of all operands of floating point, along axes of rows that no stage reduces;
    and of ``whole`` numbers of one byte, if they are wanted. Packed codes have none: any draw has
    all of their values.
    """
    reduced = {axis for stage in program.stages for axis in stage.over}
    rows = set(row_axes(program)) - reduced
    return [
        Slices(operand, _along(program, operand, rows))
        for operand in program.operands
        if not operand.coded and (not operand.element.is_integer or (whole and _is_small(operand)))
    ]


def _is_small(operand: Operand) -> bool:
    """Tell whether an operand has whole numbers of one byte, which are no indices."""
    return operand.element.bytes == 1 and operand.drawn is None


def turns(count: int, kinds: int) -> int:
    """Return the draws in which so many slices have all kinds, or :data:`TURNS`."""
    return min(TURNS, -(-kinds // max(count, 1)))


def _along(program: Program, operand: Operand, rows: set[str]) -> tuple[int, ...]:
    """Return the dimensions at which it is read by an axis of ``rows`` alone."""
    own = [
        read
        for stage in program.stages
        for read in reads(program, stage)
        if read.name == operand.name
    ]
    return tuple(
        d
        for d in range(len(operand.shape))
        if own
        and all(isinstance(i := read.indices[d], AxisValue) and i.name in rows for read in own)
    )
