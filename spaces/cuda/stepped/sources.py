"""Places where operands are while steps are computed.

Those that differ from step to step, and along one axis beside, come through shared memory, many
steps at a time. Those that are alike at all steps stay in registers. Others are read where they are
wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.algebra.layout import Strided, strided
from tilewright.spaces.cuda.blocks.copies.block_copy import widest_vector
from tilewright.spaces.cuda.blocks.copies.tile_copy import TileCopy
from tilewright.spaces.derivation.rows.addresses import Steps
from tilewright.spaces.derivation.stepped.view import SteppedView
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.array import Array

ALIGNED = 16
"""Bytes at whose multiples rows of shared memory begin."""


class Kind(Enum):
    """The ways in which an operand is read."""

    STAGED = "staged"
    HELD = "held"
    DIRECT = "direct"


@dataclass(frozen=True)
class Source:
    """The operand of a ``read``, which has the number ``number`` among those of a program."""

    view: SteppedView
    read: Read
    number: int

    @property
    def name(self) -> str:
        """The C variable that points to its first element in a row."""
        return f"x{self.number}"

    @cached_property
    def array(self) -> Array:
        """The operand."""
        return self.view.program.operand[self.read.name]

    @cached_property
    def steps(self) -> Steps:
        """Its place in memory."""
        return self.view.places[self.read]

    @cached_property
    def inner(self) -> tuple[str, ...]:
        """The inner axes along which it differs."""
        return tuple(axis for axis in self.view.inner if self.steps.step(axis))

    @property
    def by_lane(self) -> bool:
        """Tell whether it differs along lanes."""
        return bool(self.steps.step(self.view.lane))

    @property
    def moves(self) -> bool:
        """Tell whether it differs from step to step."""
        return bool(self.steps.step(self.view.position))

    @property
    def kind(self) -> Kind:
        """The way in which it is read."""
        if self._is_of_terms or self.read in self.view.borders:
            return Kind.DIRECT
        if not self.moves:
            return Kind.HELD
        if (self.by_lane and self.inner) or not self._is_one_run:
            return Kind.DIRECT
        return Kind.STAGED

    @property
    def _is_of_terms(self) -> bool:
        """Tell whether it differs from term to term of a sum that each point has."""
        return any(
            group.kept and group.reduced and not set(group.reduced).isdisjoint(self.inner)
            for group in self.view.groups
            for stage in group.stages
            if self.read in stage.body.value_reads
        )

    @property
    def _is_one_run(self) -> bool:
        """Tell whether its inner axes are as one in memory."""
        step, extent = self.steps.step, self.view.extent
        pairs = zip(self.inner, self.inner[1:], strict=False)
        return all(step(a) == step(b) * extent(b) for a, b in pairs)

    # -- elements of a step ------------------------------------------------------------------------

    @property
    def extent(self) -> int:
        """The elements of a step, of all lanes."""
        return self.view.extent(self.view.lane) if self.by_lane else self.view.extent(*self.inner)

    def width(self, columns: Any) -> Any:
        """Return the elements of a step that a block with so many columns has."""
        return columns if self.by_lane else self.extent

    def row(self, columns: Any) -> Any:
        """Return the elements from one step to the next in shared memory."""
        width, bytes = self.width(columns), self.array.element.bytes
        return np.where(np.equal(width, 1), 1, round_up(width * bytes, ALIGNED) // bytes)

    def copy(self, steps: int, columns: int, threads: int, integer: str) -> TileCopy:
        """Return the copy of so many steps at a time, in the order in which they are computed."""
        width, element = int(self.width(columns)), self.array.element
        apart = self.steps.step(self._along) if self._along else 1
        along = self.steps.step(self.view.position) * self.view.direction
        shape = (self.view.extent(self.view.position), self.extent)
        return TileCopy(
            name=self.name,
            dtype=self.array.dtype,
            tile=(steps, width),
            threads=threads,
            vector=widest_vector(width, self._run if apart == 1 else 1, element.bytes),
            shared=strided((steps, width), (int(self.row(columns)), 1)),
            shared_dtype=self.array.dtype,
            integer=integer,
            source=Strided(shape, shape[0] * shape[1], (along, apart)),
            distance=steps * along,
        )

    @property
    def _along(self) -> str:
        """The fastest axis beside steps; empty if there is none."""
        return self.view.lane if self.by_lane else next(reversed(self.inner), "")

    @property
    def _run(self) -> int:
        """Elements by whose multiples vectors begin, if neighbours lie side by side."""
        within = {self._along, *self.inner}
        others = (step for axis, step in self.steps.by_axis.items() if axis not in within)
        return gcd(self.steps.offset, self.extent, *others)


def sources_of(view: SteppedView) -> Mapping[Read, Source]:
    """Return the source of each read of an operand."""
    return {read: Source(view, read, number) for number, read in enumerate(view.places)}
