"""Extents and resources of kernels that go step by step. Sizes are integers or, element by element,
NumPy arrays of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.stepped.sources import ALIGNED, Kind, Source, sources_of
from tilewright.spaces.cuda.stepped.tile import WIDEST, Points, axes_of, crossing
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.decided import Decided
from tilewright.spaces.derivation.stepped.view import SteppedView
from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import Read

REAL = 4
"""Bytes of a number in a register."""
BOOKKEEPING = 32
"""Registers of a thread that hold no elements."""


@dataclass(frozen=True)
class StepSizes:
    """Tiles of ``view`` under the decisions ``values`` (integers or arrays).

    Each warp has its own columns: elements along lanes, of which a thread has a vector. So many
    ``row_threads`` of it share the points of inner axes.
    """

    view: SteppedView
    values: Mapping[str, Any]

    row_threads = Decided()
    """Threads that share the points of a column."""
    warps = Decided()
    """Warps of a block."""
    vector = Decided()
    """Columns of a thread."""
    steps = Decided()
    """Steps that are copied to shared memory at a time."""
    stages = Decided()
    """Places for so many steps."""
    unroll = Decided()
    """Steps that are written one after the other."""

    # -- blocks ------------------------------------------------------------------------------------

    @property
    def threads(self) -> Any:
        """Threads of a block."""
        return self.warps * WARP

    @property
    def columns(self) -> Any:
        """Columns of a block."""
        return self.warps * (WARP // self.row_threads) * self.vector

    @property
    def column_blocks(self) -> Any:
        """Blocks that share the columns of a row."""
        return ceil_div(self.view.extent(self.view.lane), self.columns)

    @property
    def blocks(self) -> Any:
        """Blocks of the grid."""
        return self.view.extent(*self.view.rows) * self.column_blocks

    @property
    def chunks(self) -> Any:
        """Times that steps are copied."""
        return ceil_div(self.view.extent(self.view.position), self.steps)

    # -- registers ---------------------------------------------------------------------------------

    def count(self, stage: Stage) -> Any:
        """Return the elements of a stage that a thread has at one step."""
        return self.elements(self.view.inner_of(stage.axes), self.view.lane in stage.axes)

    def elements(self, inner: Sequence[str], by_lane: bool) -> Any:
        """Return the elements that a thread has along ``inner`` axes, and of all its columns if
        they differ ``by_lane``."""
        points = ceil_div(self.view.extent(*inner), self.row_threads) if inner else 1
        return points * (self.vector if by_lane else 1)

    def terms(self, stage: Stage) -> Any:
        """Return the elements of a stage that a thread computes at one step, or their terms."""
        inner = self.view.inner_of((*stage.axes, *stage.over))
        return self.elements(inner, self.view.lane in stage.axes)

    @property
    def most_points(self) -> int:
        """The most points of a group."""
        return max((self.view.extent(*axes_of(self.view, g)) for g in self.view.groups), default=1)

    @property
    def state(self) -> Any:
        """The elements of the state that a thread keeps from step to step."""
        return sum(self.count(self.view.stage[name]) for name in self.view.first)

    @property
    def registers(self) -> Any:
        """Registers of a thread, roughly."""
        read = sum(
            ceil_div(self.elements(s.inner, s.by_lane) * s.array.element.bytes, REAL)
            for s in self.sources.values()
            if s.kind is not Kind.DIRECT
        )
        sums = sum(self.count(stage) for stage in self.view.stages if stage.reducer)
        return BOOKKEEPING + self.state + read + sums

    def points(self, axes: Sequence[str]) -> Points:
        """Return the tile of points of a group, under one schedule."""
        extents, widest = self.view.program.shape(tuple(axes)), 1 if self.crossing else WIDEST
        return Points(extents, int(self.row_threads), widest)

    # -- shared memory -----------------------------------------------------------------------------

    @cached_property
    def sources(self) -> Mapping[Read, Source]:
        """The sources of operands."""
        return sources_of(self.view)

    @cached_property
    def staged(self) -> Sequence[Source]:
        """The sources that come through shared memory."""
        return [source for source in self.sources.values() if source.kind is Kind.STAGED]

    def source_bytes(self, source: Source) -> Any:
        """Return the bytes of an operand in one stage."""
        size = self.steps * source.row(self.columns) * source.array.element.bytes
        return round_up(size, ALIGNED)

    @property
    def stage_bytes(self) -> Any:
        """Bytes of a stage."""
        return sum((self.source_bytes(s) for s in self.staged), start=np.int64(0))

    @cached_property
    def crossing(self) -> Sequence[Stage]:
        """The stages of which threads read elements that others of their warp make."""
        names = crossing(self.view)
        return [stage for stage in self.view.stages if stage.name in names]

    def crossing_bytes(self, stage: Stage) -> Any:
        """Return the bytes of the elements of a stage at one step, of all columns of a block."""
        return REAL * self.view.extent(*self.view.inner_of(stage.axes)) * self.columns

    @property
    def shared_bytes(self) -> Any:
        """Bytes of shared memory of a block: stages of operands, and then elements of this step
        and the one before."""
        own = sum(self.crossing_bytes(stage) for stage in self.crossing)
        return self.stages * self.stage_bytes + 2 * own
