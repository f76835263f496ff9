"""The CPU template for scans: reductions over prefixes and suffixes, with maps around.

Decisions:

- ``lanes``: columns of one row, whose sums run along the lanes, or the same column of several rows.
- ``vectors``: those of a row that are summed up at once, or those that lie side by side.
- ``stores``: through the caches or past them.
- ``parallel_over``: workers share rows, or the columns of each row, which are walked twice.
- ``workers``: threads that share these.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import Code
from tilewright.spaces.cpu.rows.served import row_expressions
from tilewright.spaces.cpu.rows.work import CALL_REGISTERS, steps
from tilewright.spaces.cpu.scan.prelude import prelude
from tilewright.spaces.cpu.scan.rules import COLUMNS, ROWS, across, scan_rules
from tilewright.spaces.cpu.scan.served import why_no_scan
from tilewright.spaces.cpu.scan.traffic import scan_quantities
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.vectors import wide
from tilewright.spaces.derivation.scans.served import cached_scan
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

CACHED, STREAMING = "cached", "streaming"


class ScanTemplate(CpuTemplate):
    """Reductions over prefixes or suffixes of rows, in float32 or float64."""

    name: ClassVar[str] = "scan"
    version: ClassVar[int] = 3
    refuses_products: ClassVar[str] = "it is a product of matrices; no sum in it is over a prefix"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.view = cached_scan(self.workload.program)
        self.element = dtype(self.workload.accumulator)
        self.lanes = self.cpu.lanes(self.element.bytes)
        self.steps = steps(self.view, self.view.plain, None)
        self.decisions = self._decisions()
        self.rules = scan_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: a reduction goes over no prefixes, or a value is no
        float."""
        return why_no_scan(workload)

    @property
    def lane_axes(self) -> tuple[str, ...]:
        """The values of ``lanes``: several rows are allowed if there are any."""
        return (COLUMNS, ROWS) if self.view.rows[-1].extent > 1 else (COLUMNS,)

    def items(self, columns: Columns) -> Any:
        """Compute the number of items that workers share: rows, or groups of rows side by side."""
        last = self.view.rows[-1].extent
        together = np.where(across(columns), columns["vectors"] * self.lanes, 1)
        return self.view.row_count // last * ceil_div(last, together)

    def registers(self, columns: Columns) -> Any:
        """Compute the vector registers in use: one for each vector in flight, those of sums, a
        constant, and those of functions."""
        calls = CALL_REGISTERS * any(step.has_calls for step in self.steps)
        flying = np.where(across(columns), 1, columns["vectors"])
        return flying + 2 * len(self.view.running) + 1 + calls

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.scan.traffic``."""
        return scan_quantities(self, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.scan.code import ScanCode

        values = schedule.values
        return ScanCode(
            view=self.view,
            operands=self.workload.operands,
            vectors=int(values["vectors"]),
            streaming=values["stores"] == STREAMING,
            workers=int(values["workers"]),
            lanes=self.lanes,
            element=self.element.name,
            lanes_are_rows=values["lanes"] == ROWS,
            splits=values["parallel_over"] == COLUMNS,
            entry=entry,
        )

    def _prelude(self) -> str:
        shared = prelude(self.functions, self.cpu, self.element.name)
        known = magnitudes(self.view.program)
        return shared + wide.numbers(self.lanes, known, row_expressions(self.view))

    def _decisions(self) -> tuple[Decision, ...]:
        splits = self.cpu.threads > 1 and not self.view.is_chained
        streams = self.element.name == "float32"
        return (
            Decision("lanes", self.lane_axes),
            Decision("vectors", (1, 2, 4, 8, 16, 32, 64, 128)),
            Decision("stores", (CACHED, STREAMING) if streams else (CACHED,)),
            Decision("parallel_over", (ROWS, COLUMNS) if splits else (ROWS,)),
            Decision("workers", self.cpu.even_workers),
        )
