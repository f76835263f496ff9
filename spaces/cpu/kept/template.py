"""The CPU template of reductions along kept axes.

It is about reading as little as possible: outputs whose windows overlap share a tile in registers,
and the order of loops keeps what is read again near the core. Decisions: ``vectors`` and
``coarsening`` of a tile along ``coarsened_axis``, the taps to ``unroll``, the ``order`` of loops,
``streaming_stores``, and ``workers`` with the loops that they share (``parallel_over``). See
``spaces.cpu.kept.code``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import Code
from tilewright.spaces.cpu.kept.prelude import prelude
from tilewright.spaces.cpu.kept.rules import kept_rules
from tilewright.spaces.cpu.kept.served import why_not_kept
from tilewright.spaces.cpu.kept.tiling import INNER, KEPT, MIDDLE, OUTER, REDUCED, Tiling
from tilewright.spaces.cpu.kept.traffic import kept_quantities
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.derivation.kept.view import cached_kept, loops_across
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class KeptTemplate(CpuTemplate):
    """Pooling, depthwise convolutions, sums of columns: a reduction of its own in each lane."""

    name: ClassVar[str] = "kept"
    version: ClassVar[int] = 4
    refuses_products: ClassVar[str] = "it is a product of matrices, which tiles serve better"
    recomputes: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.view = cached_kept(self.workload.program)
        self.element = dtype(self.workload.accumulator)
        self.lanes = self.cpu.lanes(self.element.bytes)
        self.decisions = self._decisions()
        self.rules = kept_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: several reductions or none, a condition, or elements that lie
        apart."""
        return why_not_kept(workload, cpu)

    def tiling(self, values: Mapping[str, Any]) -> Tiling:
        """Return the tiles of one schedule, or of columns of many."""
        return Tiling(self.view, values, self.lanes)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.kept.traffic``."""
        return kept_quantities(self, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.kept.code import KeptCode

        return KeptCode(
            tiling=self.tiling(schedule.values),
            operands=self.workload.operands,
            element=self.element.name,
            streaming=bool(schedule.values["streaming_stores"]),
            entry=entry,
        )

    def _prelude(self) -> str:
        return prelude(self.functions, self.cpu, self.element.name)

    def _decisions(self) -> tuple[Decision, ...]:
        view, threads = self.view, self.cpu.threads
        reduces = threads > 1 and bool(view.taps)
        streams = self.element.name == "float32"
        return (
            Decision("vectors", (1, 2, 3, 4, 6, 8)),
            Decision("coarsened_axis", loops_across(view)),
            Decision("coarsening", tuple(range(1, 9)) if len(view.kept) > 1 else (1,)),
            Decision("unroll", tuple(range(len(view.taps) + 1))),
            Decision("order", (INNER, MIDDLE, OUTER)),
            Decision("streaming_stores", (False, True) if streams else (False,)),
            Decision("parallel_over", (KEPT, REDUCED) if reduces else (KEPT,)),
            Decision("workers", tuple(range(1, threads + 1))),
        )
