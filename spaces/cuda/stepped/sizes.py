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
from tilewright.spaces.derivation.scopes import special
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
        if stage in self.ahead:
            return ceil_div(self.view.extent(*inner), self.threads)
        return self.elements(inner, self.view.lane in stage.axes)

    @property
    def most_points(self) -> int:
        """The most points of a group."""
        return max((self.view.extent(*axes_of(self.view, g)) for g in self.view.groups), default=1)

    @property
    def state(self) -> Any:
        """The elements of the state that a thread keeps from step to step."""
        ahead = {stage.name for stage in self.ahead}
        return sum(self.count(self.view.stage[n]) for n in self.view.first if n not in ahead)

    @property
    def registers(self) -> Any:
        """Registers of a thread, roughly."""
        read = sum(
            ceil_div(self.elements(s.inner, s.by_lane) * s.array.element.bytes, REAL)
            for s in self.sources.values()
            if s.kind is not Kind.DIRECT
        )
        sums = sum(self.count(s) for s in self.view.stages if s.reducer or s.name in self.shown)
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

    @cached_property
    def ahead(self) -> Sequence[Stage]:
        """The stages of points that are alike in all columns, and call functions: all threads of a
        block compute them for many steps before these."""
        found = [stage for stage in self.view.stages if self._is_alike(stage)]
        if self.crossing or not self._has_one_order:
            return []
        while (known := self._of_each_other(found)) != found:
            found = known
        return found if self.staged and any(special(stage.body) for stage in found) else []

    @property
    def _has_one_order(self) -> bool:
        """Tell whether all stages have their points in one order."""
        view = self.view
        orders = {axes_of(view, group) for group in view.groups}
        orders |= {view.inner_of(stage.axes) for stage in view.stages}
        return len(orders - {()}) <= 1

    def _is_alike(self, stage: Stage) -> bool:
        """Tell whether a stage is a map over points that all columns have."""
        view, by_lane = self.view, (s.read for s in self.sources.values() if s.by_lane)
        is_output = stage.name in {output.name for output in view.outputs}
        if stage.reducer or is_output or not view.inner_of(stage.axes):
            return False
        reads = {*stage.body.value_reads}
        return bool(view.lane) and view.lane not in stage.body.axes and reads.isdisjoint(by_lane)

    def _of_each_other(self, found: Sequence[Stage]) -> list[Stage]:
        """Return the stages that read no others, and that no others read one step before."""
        names = {stage.name for stage in found} - {stage.name for stage in self.crossing}
        others = [stage for stage in self.view.stages if stage.name not in names]
        late = {r.name for s in others for r in s.body.value_reads if self.view.is_before(r)}
        return [
            stage
            for stage in found
            if stage.name in names - late
            and {r.name for r in stage.body.value_reads} & self.view.stage.keys() <= names
        ]

    @cached_property
    def shown(self) -> frozenset[str]:
        """The names of stages that are computed ahead, and that others read."""
        names, ahead = {stage.name for stage in self.ahead}, self.ahead
        others = (stage for stage in self.view.stages if stage not in ahead)
        return frozenset(r.name for s in others for r in s.body.value_reads if r.name in names)

    def ahead_row(self, stage: Stage) -> int:
        """Return the bytes of a stage that is computed ahead, at one step."""
        return int(round_up(REAL * self.view.extent(*self.view.inner_of(stage.axes)), ALIGNED))

    @property
    def shared_bytes(self) -> Any:
        """Bytes of shared memory of a block: stages of operands, elements of this step and the one
        before, and what is computed ahead."""
        own = sum(self.crossing_bytes(stage) for stage in self.crossing)
        ahead = sum(self.ahead_row(s) for s in self.ahead if s.name in self.shown)
        return self.stages * self.stage_bytes + 2 * own + self.steps * ahead
