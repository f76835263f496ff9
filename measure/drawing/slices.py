"""Operands in slices that rows of a program read each by itself, so that one draw has edges of
several kinds side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.spaces.derivation.rounding.rows import reads, row_axes
from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.language.tree import AxisValue

Kind = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Makes other values of those of slices, each a row of a float64 array."""
TURNS = 3
"""Draws at most that slices take turns in to have all kinds."""


@dataclass(frozen=True)
class Slices:
    """An operand of floating point, and its dimensions ``along`` which slices lie."""

    operand: Operand
    along: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of slices."""
        return prod(self.operand.shape[d] for d in self.along)

    def changed(
        self, values: np.ndarray, kinds: Sequence[Kind], first: int, generator: np.random.Generator
    ) -> np.ndarray:
        """The operand's ``values`` with a kind for each slice, in turn from the ``first`` on; when
        all have had their turn, in another order."""
        others = [d for d in range(values.ndim) if d not in self.along]
        order = (*self.along, *others)
        wide = values.astype(np.float64).transpose(order)
        flat = wide.reshape(self.count, -1).copy()
        number = np.arange(self.count)
        number = (number + number // len(kinds) * (first + 1) + first) % len(kinds)
        with np.errstate(all="ignore"):
            for place, kind in enumerate(kinds):
                if (number == place).any():
                    flat[number == place] = kind(flat[number == place], generator)
            return self.operand.array(flat.reshape(wide.shape).transpose(np.argsort(order)))


def slices(program: Program) -> list[Slices]:
    """List the slices of all operands of floating point: along axes of rows that no stage
    reduces.
    """
    reduced = {axis for stage in program.stages for axis in stage.over}
    rows = set(row_axes(program)) - reduced
    return [
        Slices(operand, _along(program, operand, rows))
        for operand in program.operands
        if not operand.element.is_integer
    ]


def turns(count: int, kinds: int) -> int:
    """Draws in which so many slices have all kinds, or :data:`TURNS`."""
    return min(TURNS, -(-kinds // max(count, 1)))


def _along(program: Program, operand: Operand, rows: set[str]) -> tuple[int, ...]:
    """The dimensions at which it is read by an axis of ``rows`` alone."""
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
