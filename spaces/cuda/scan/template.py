"""The CUDA template for scans: reductions over prefixes and suffixes, with maps around.

Decisions:

- ``vector``: columns side by side that a thread reads at once.
- ``lanes``: neighbouring threads have neighbours of a row, or the same column of several rows.
- ``row_threads``, ``block_rows``: threads of a row in a block, and its rows.
- ``vectors``: those of a thread in a tile.
- ``parallel_over``: a block walks along its rows, or blocks share the columns of each.
- ``loads``, ``stores``: through the caches or past them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cuda.rows.sizes import RowSizes
from tilewright.spaces.cuda.rows.tile import LANES
from tilewright.spaces.cuda.rows.values import computed_in
from tilewright.spaces.cuda.scan.code import ScanCode
from tilewright.spaces.cuda.scan.context import HELD, ScanContext
from tilewright.spaces.cuda.scan.rules import scan_rules
from tilewright.spaces.cuda.scan.served import why_no_scan
from tilewright.spaces.cuda.scan.sizes import COLUMNS, ROWS, ScanSizes
from tilewright.spaces.cuda.scan.traffic import scan_quantities
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.scans.served import cached_scan
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class CudaScan(CudaTemplate):
    """Reductions over prefixes or suffixes of rows, in float32 or float64."""

    name: ClassVar[str] = "scan"
    version: ClassVar[int] = 1
    refuses_products: ClassVar[str] = "it is a product of matrices; no sum in it is over a prefix"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.view = cached_scan(self.workload.program)
        self.real = 8 if computed_in(self.workload.program) == "double" else 4
        self.arrays = RowSizes(self.view, self.real)
        self.decisions = self._decisions()
        self.rules = scan_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why there is no kernel: a reduction goes over no prefixes, or there is no code
        for a type."""
        return why_no_scan(workload, cuda)

    def sizes(self, columns: Any) -> ScanSizes:
        """Return the tiles of schedules: of one, or of columns of many."""
        return ScanSizes(self.view, columns, self.real)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.scan.traffic``."""
        return scan_quantities(self, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        context = ScanContext(self.view, {**HELD, **schedule.values})
        return ScanCode(context, self.entry(schedule)).kernel()

    def _decisions(self) -> tuple[Decision, ...]:
        widest = self.arrays.widest
        return (
            Decision("vector", tuple(v for v in (1, 2, 4, 8, 16) if widest // 2 <= v <= widest)),
            Decision("lanes", LANES[1:] if self.arrays.lies_along_rows else LANES[:1]),
            Decision("row_threads", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
            Decision("block_rows", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)),
            Decision("vectors", (1, 2, 4, 8, 16, 32)),
            Decision("parallel_over", (ROWS, COLUMNS)),
            Decision("loads", ("cached", "stream")),
            Decision("stores", ("cached", "stream")),
        )
