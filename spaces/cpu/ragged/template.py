"""The CPU template of kernels over ranges of entries.

Rows of sparse matrices and of graphs are as long as their data say, and their entries gather
elements from anywhere. Decisions: ``vectors`` that stay in registers for a row, ``unroll`` of
entries, ``prefetch`` of what entries gather, ``stream_prefetch`` of what lies in their order,
``parallel_over`` rows or entries, and ``workers``. See ``spaces.cpu.ragged.code``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import Code
from tilewright.spaces.cpu.ragged.prelude import prelude
from tilewright.spaces.cpu.ragged.rules import ENTRIES, ROWS, ragged_rules
from tilewright.spaces.cpu.ragged.served import why_not_ragged
from tilewright.spaces.cpu.ragged.traffic import ragged_quantities
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.derivation.ragged.traffic import longest_row
from tilewright.spaces.derivation.ragged.turning import turned
from tilewright.spaces.derivation.ragged.view import RaggedView, cached_ragged
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Workload

COPIED = 3.0
"""Instructions to copy an element into another order."""


class RaggedTemplate(CpuTemplate):
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
        self.element = dtype(self.workload.accumulator)
        self.lanes = self.cpu.lanes(self.element.bytes)
        self.decisions = self._decisions()
        self.rules = ragged_rules(self)

    def _view(self, program: Program) -> RaggedView:
        return cached_ragged(program)

    @property
    def turned(self) -> Sequence[Array]:
        """Arrays that kernels copy into another order, or out of it; none here."""
        return ()

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: nothing is reduced over a range, or a step depends on other
        rows."""
        return why_not_ragged(workload, cpu)

    @cached_property
    def lane_extents(self) -> tuple[int, ...]:
        """The extents of the kept axes along which lanes lie."""
        view = self.view
        lanes = {s.lane for s in view.steps if not s.along and s.lane != view.range.entry}
        lanes |= {o.lane for o in view.outputs if o.lane is not None and not o.along}
        return tuple(view.program.extent[axis] for axis in sorted(lanes))

    @property
    def longest_row(self) -> float:
        """Entries of the longest row, as the table of ranges is drawn."""
        view = self.view
        if not view.has_rows:
            return view.entries / self.cpu.threads
        return longest_row(view)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.ragged.traffic``."""
        return ragged_quantities(self, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.ragged.code import RaggedCode
        from tilewright.spaces.cpu.ragged.row import Tuning

        values = schedule.values
        return RaggedCode(
            view=self.view,
            operands=self.workload.operands,
            tuning=Tuning(
                vectors=int(values["vectors"]),
                unroll=int(values["unroll"]),
                ahead=int(values["prefetch"]),
                stream=int(values["stream_prefetch"]),
                lanes=self.lanes,
                element=self.element.name,
            ),
            workers=int(values["workers"]),
            splits=values["parallel_over"] == ENTRIES,
            entry=entry,
            turned=self.turned,
        )

    def _prelude(self) -> str:
        return prelude(self.functions, self.cpu, self.element.name)

    def _decisions(self) -> tuple[Decision, ...]:
        threads, view = self.cpu.threads, self.view
        by_lanes = bool(self.lane_extents)
        gathers = any(place.entries for place in view.places.values())
        splits = threads > 1 and view.splittable is not None
        reduces = any(
            not (s.along or s.finds_places) and s.lane != view.range.entry for s in view.steps
        )
        return (
            Decision("vectors", (1, 2, 3, 4, 6, 8, 12, 16) if by_lanes else (1,)),
            Decision("unroll", (1, 2, 4) if reduces else (1,)),
            Decision("prefetch", (0, 4, 8, 16, 32) if gathers else (0,)),
            Decision("stream_prefetch", (0, 256, 1024)),
            Decision("parallel_over", (ROWS, ENTRIES) if splits else (ROWS,)),
            Decision("workers", tuple(range(1, threads + 1))),
        )


class TurnedRagged(RaggedTemplate):
    """The same with arrays in the order in which entries gather neighbours: copies at each call."""

    name: ClassVar[str] = "ragged_turned"
    version: ClassVar[int] = 1

    def _view(self, program: Program) -> RaggedView:
        return turned(program).view

    @property
    def turned(self) -> Sequence[Array]:
        """Arrays that kernels copy into another order first, and outputs out of it last."""
        return turned(self.workload.program).arrays

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities: those of ``ragged``, and of the copies."""
        found = super().quantities(columns)
        elements, size = (float(sum(getattr(a, n) for a in self.turned)) for n in ("size", "bytes"))
        for name, more in (
            ("instructions", COPIED * elements),
            *((name, 2 * size) for name in ("register_bytes", "near_bytes", "packing_bytes")),
        ):
            found[name] = found[name] + more
        return found

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: none of ``ragged``, or nothing to turn."""
        if reason := why_not_ragged(workload, cpu):
            return reason
        try:
            turned(workload.program)
        except InputError as reason:
            return str(reason)
        return None
