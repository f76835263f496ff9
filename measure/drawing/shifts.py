"""Inputs whose scores are far apart, or that have large means: what cancels is seen there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.measure.drawing.cancelling import is_read_along
from tilewright.measure.drawing.scores import scores_of
from tilewright.measure.drawing.slices import Slices, slices
from tilewright.spaces.derivation.rounding.rows import Places, reads
from tilewright.spaces.language.inputs import Spread
from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.language.tree import AxisValue

MEAN = 100.0
"""A large mean of values that are apart by about one."""
GROWN = np.sqrt(0.5), np.sqrt(8.0)
"""Factors of values at the beginning and at the end of a reduction."""
APART = 3.0
"""The factor of an element that is apart from all others."""
WHOLE = 2
"""Operands at most that have a large mean, one after the other."""


@dataclass(frozen=True)
class SinglePlace:
    """A ``place`` along a ``dimension`` of an operand, which is read by an ``axis``."""

    dimension: int
    place: int
    axis: str


@dataclass(frozen=True)
class Shift:
    """A change of one operand: values are multiplied by ``scale`` and have a ``mean``. By ``rows``
    in turn that is added, left alone and subtracted. If values ``grow``, it is along this
    dimension. They are zero at all but ``one`` place along a dimension, if there is one."""

    name: str
    operand: Operand
    scale: float = 1.0
    mean: float = 0.0
    rows: int | None = None
    grow: int | None = None
    one: SinglePlace | None = None

    def applied(
        self, inputs: Mapping[str, np.ndarray], known: Mapping[str, Places] | None = None
    ) -> dict[str, np.ndarray]:
        """Return other values of the operand, which is ``known`` at some places alone."""
        values = inputs[self.operand.name]
        mean, scale = np.asarray(self.mean), np.asarray(self.scale)
        if self.rows is not None:
            mean = mean * (self._places(self.rows, values, known) % 3 - 1)
        if self.grow is not None:
            place = self._places(self.grow, values, known) / self.operand.shape[self.grow]
            scale = scale * (GROWN[0] + (GROWN[1] - GROWN[0]) * place)
        if self.one is not None:
            places = self._places(self.one.dimension, values, known)
            scale = scale * (places == self.one.place)
        with np.errstate(all="ignore"):
            return {self.operand.name: self._cast(values.astype(np.float64) * scale + mean)}

    def _places(
        self, dimension: int, values: np.ndarray, known: Mapping[str, Places] | None
    ) -> np.ndarray:
        """Return the numbers of the places along a dimension, to be broadcast."""
        every = np.arange(self.operand.shape[dimension])
        places = (known or {}).get(self.operand.name, {}).get(dimension, every)
        return places.reshape([-1 if d == dimension else 1 for d in range(values.ndim)])

    def _cast(self, values: np.ndarray) -> np.ndarray:
        if values.shape == self.operand.shape:
            return self.operand.array(values)
        return self.operand.element.cast(values)


def shifts(program: Program, usual: Spread, steep: Spread | None) -> Iterator[Shift]:
    """Yield the shifts that are worth trying for a program with stages that cancel: for inputs of
    the ``usual`` spread, and of the ``steep`` one, which sets scores far apart.
    """
    if steep is not None:
        before = usual.scale if usual.operand == steep.operand else 1.0
        operand = program.operand[steep.operand]
        yield Shift("scores far apart", operand, steep.scale / before)
    if usual.operand and usual.scale != 1.0:
        yield Shift("values of order one", program.operand[usual.operand], 1 / usual.scale)
    every = [own for own in slices(program) if own.operand.name in cancelling_operands(program)]
    for own in every[:WHOLE]:
        yield Shift(f"a mean of {MEAN:g} in {own.operand.name}", own.operand, mean=MEAN)
    for own in every[:1]:
        yield from _by_place(own)
    for own in every[:WHOLE][-1:] if steep else ():
        yield from _apart(program, own.operand)


def _by_place(own: Slices) -> Iterator[Shift]:
    operand = own.operand
    inner = [d for d in range(len(operand.shape)) if d not in own.along]
    if own.along:
        yield Shift(f"means by row in {operand.name}", operand, mean=MEAN, rows=own.along[-1])
    if inner:
        yield Shift(f"values that grow in {operand.name}", operand, grow=inner[0])


def _apart(program: Program, operand: Operand) -> Iterator[Shift]:
    """Yield one element apart from many equal ones, which together weigh as much: the first, or
    last of those whose scores are compared."""
    scores = scores_of(program)
    compared = scores.program.stages[-1].axes[-scores.over :] if scores else ()
    every = [
        (dimension, index.name)
        for stage in program.stages
        for read in reads(program, stage)
        if read.name == operand.name
        for dimension, index in enumerate(read.indices)
        if isinstance(index, AxisValue) and index.name in compared
    ]
    for dimension, axis in every[:1]:
        for place, name in ((0, "first"), (operand.shape[dimension] - 1, "last")):
            title = f"all but the {name} in {operand.name} equal"
            yield Shift(title, operand, APART, one=SinglePlace(dimension, place, axis))


def cancelling_operands(program: Program) -> set[str]:
    """Find the operands that stages which cancel are computed from."""
    found: set[str] = set()
    for stage in reversed(program.stages):
        if stage.name in found or is_read_along(program, stage):
            found |= {read.name for read in reads(program, stage)}
    return found
