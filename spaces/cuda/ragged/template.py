"""The CUDA template of kernels over ranges of entries.

Rows of sparse matrices and of graphs are as long as their data say, and their entries gather
elements from anywhere. Decisions:

- ``vector``, ``vectors``: columns side by side that a thread reads at once, and how many times;
  where threads lie along entries, how many columns they reduce at a time.
- ``column_threads``, ``entry_threads``: threads of a team along columns, and groups of them that
  share a row's entries.
- ``unroll``: entries that a group reads at a time.
- ``threads``: those of a block.
- ``parallel_over``: a team has a whole row, or as many rows and entries as others.
- ``team_items``: the number of these.
- ``stores``: through the caches, or as the first to leave them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.ragged.code import RaggedCode
from tilewright.spaces.cuda.ragged.rules import ragged_rules
from tilewright.spaces.cuda.ragged.served import why_not_ragged
from tilewright.spaces.cuda.ragged.sizes import ENTRIES, ROWS, RaggedSizes
from tilewright.spaces.cuda.ragged.traffic import ragged_quantities
from tilewright.spaces.cuda.rows.reducers import helpers
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.ragged.turning import turned
from tilewright.spaces.derivation.ragged.view import RaggedView, cached_ragged
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.program import Program
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Workload


class CudaRagged(CudaTemplate):
    """Reductions over a range of entries for each row: sparse matrices, graphs, packed
    sequences."""

    name: ClassVar[str] = "ragged"
    version: ClassVar[int] = 2
    refuses_products: ClassVar[str] = (
        "it is a product of matrices; no sum in it has a range that a table gives"
    )

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.view = self._view(self.workload.program)
        self.decisions = self._decisions()
        self.rules = ragged_rules(self)

    def _view(self, program: Program) -> RaggedView:
        return cached_ragged(program)

    @property
    def turned(self) -> Sequence[Array]:
        """Arrays that kernels copy into another order first; none here."""
        return ()

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why there is no kernel: nothing is reduced over a range, or a step depends on
        other rows."""
        return why_not_ragged(workload)

    @cached_property
    def lane_extents(self) -> tuple[int, ...]:
        """The extents of the axes along which neighbouring threads lie, but for entries."""
        view = self.view
        lanes = {step.lane for step in view.steps if step.counts is None} - {view.range.entry}
        return tuple(view.program.extent[axis] for axis in sorted(lanes))

    @cached_property
    def column_extents(self) -> tuple[int, ...]:
        """The extents of the axes that a thread may have several points of."""
        view = self.view
        across = {s.kept[-1] for s in view.steps if not s.along and s.kept and s.counts is None}
        return (*self.lane_extents, *(view.program.extent[axis] for axis in sorted(across)))

    @cached_property
    def element_bytes(self) -> int:
        """Bytes of the smallest element that is read."""
        operands = self.view.program.operand
        read = {r.name for r in self.view.places} & operands.keys()
        return min((operands[name].element.bytes for name in read), default=4)

    @cached_property
    def item_counts(self) -> tuple[int, ...]:
        """The numbers of rows and entries, or entries alone, that a team may have."""
        return (32, 64, 96, 128, 192, 256)

    def sizes(self, columns: Any) -> RaggedSizes:
        """Return the teams of schedules: of one, or of columns of many."""
        return RaggedSizes(self.view, columns, self.turned)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.ragged.traffic``."""
        return ragged_quantities(self, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        functions = {*scalar_math.ALWAYS, *self.workload.functions}
        prelude = scalar_math.prelude(functions) + helpers("float")
        code = RaggedCode(self.sizes(schedule.values), self.arguments, self.entry(schedule))
        return code.kernel(prelude)

    def _decisions(self) -> tuple[Decision, ...]:
        by_lanes, view = bool(self.lane_extents), self.view
        splits = view.has_rows and view.splittable is not None
        needs_items = splits or not view.has_rows
        threads = (1, 2, 4, 8, 16, 32)
        return (
            Decision("vector", (1, 2, 4, 8) if by_lanes else (1,)),
            Decision("vectors", (1, 2, 4, 8) if self.column_extents else (1,)),
            Decision("column_threads", threads if by_lanes else (1,)),
            Decision("entry_threads", threads),
            Decision("unroll", (1, 2, 4, 8)),
            Decision("threads", (64, 128, 256, 512)),
            Decision("parallel_over", (ROWS, ENTRIES) if splits else (ROWS,)),
            Decision("team_items", self.item_counts if needs_items else self.item_counts[:1]),
            Decision("stores", ("cached", "stream")),
        )


class CudaTurnedRagged(CudaRagged):
    """The same with arrays in the order in which entries gather neighbours, copied at each call."""

    name: ClassVar[str] = "ragged_turned"
    version: ClassVar[int] = 1

    def _view(self, program: Program) -> RaggedView:
        return turned(program, with_outputs=False).view

    @property
    def turned(self) -> Sequence[Array]:
        """Arrays that kernels copy into another order first."""
        return turned(self.workload.program, with_outputs=False).arrays

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why there is no kernel: none of ``ragged``, or nothing to turn."""
        if reason := why_not_ragged(workload):
            return reason
        try:
            turned(workload.program, with_outputs=False)
        except InputError as reason:
            return str(reason)
        return None
