"""The template of reductions along rows and elementwise maps on a GPU.

``spaces.cuda.rows.code`` prints the kernel; ``spaces.cuda.rows.rules`` says which schedules are
refused.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.cuda.blocks.implicit import tiled_product_of
from tilewright.spaces.cuda.rows.code import RowsCode
from tilewright.spaces.cuda.rows.context import Context
from tilewright.spaces.cuda.rows.rules.every import row_rules
from tilewright.spaces.cuda.rows.served import why_not
from tilewright.spaces.cuda.rows.sizes import RowSizes
from tilewright.spaces.cuda.rows.tile import (
    CONVERT,
    IDLE_CLUSTERS,
    LANES,
    ROW_INVARIANTS,
    ROW_STORAGE,
)
from tilewright.spaces.cuda.rows.traffic import row_quantities
from tilewright.spaces.cuda.rows.values import computed_in
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.rows.column_sums import summed_rows_of
from tilewright.spaces.derivation.rows.served import why_product
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.open_axis import why_not_outermost
from tilewright.spaces.workloads.workload import Workload


class CudaRows(CudaTemplate):
    """The template of chains of reductions along rows, and of maps, of any program that is one."""

    name: ClassVar[str] = "rows"
    version: ClassVar[int] = 8
    refuses_products: ClassVar[str] = "needs a program; products have templates of their own"
    recomputes: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.rows = summed_rows_of(self.workload.program)
        real = 8 if computed_in(self.workload.program) == "double" else 4
        self.sizes = RowSizes(self.rows, real)
        self.decisions = _decisions(self.sizes, self.cuda)
        self.rules = tuple(row_rules(self.sizes, self.cuda, self.decisions))

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload is no program of rows, or has a type or function beyond this GPU.

        None if the template serves it.
        """
        try:
            rows = summed_rows_of(workload.program)
        except InputError as reason:
            return str(reason)
        return _why_product(workload, cuda) or why_not(rows, cuda)

    @classmethod
    def sums_over_rows(cls, workload: Workload) -> str | None:
        """Return a sentence if kernels of a workload add up columns over all rows; else None."""
        names = sorted(summed_rows_of(workload.program).summed)
        return f"{', '.join(names)} may be faster in a kernel of their own" if names else None

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.rows.traffic``."""
        return row_quantities(self.workload, self.sizes, self.cuda, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        return self._kernel(schedule, self.entry(schedule))

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Return why an axis cannot be open: only the outermost axis of rows can."""
        first, *_ = self.rows.rows
        if axis not in first.names[:1] or self.rows.summed:
            return f"{axis} is not the outermost axis of rows that nothing is summed over"
        return why_not_outermost(self.rows.program, axis)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of rows, up to the program's."""
        rows_each = self.rows.row_count // self.rows.program.extent[axis]
        return self._kernel(schedule, f"{self.entry(schedule)}_open", rows_each)

    def _kernel(self, schedule: Schedule, entry: str, rows_each: int | None = None) -> Kernel:
        values = schedule.values
        cluster = int(values["cluster"])
        layer = (
            max(self.cuda.multiprocessors // cluster - int(values["idle_clusters"]), 1) * cluster
        )
        most = int(values["blocks_per_sm"]) * layer
        return RowsCode(Context(self.rows, values, rows_each), entry, most).kernel()


def _why_product(workload: Workload, target: CudaTarget) -> str | None:
    """Return why tiles serve a program better, because it is a product of matrices; else None.

    Rows would read the factors again for each element of the product. That also goes for programs
    of which tiles compute the product and this template the rest.
    """
    from tilewright.spaces.cuda.staged.template import CudaStaged  # late: it imports this one

    reason = why_product(workload.program)
    if reason and CudaStaged.refuses(workload, target) is None:
        return f"{reason}, which have a kernel of their own"
    product = tiled_product_of(workload)
    if isinstance(product, str) or min(product.rows, product.columns) == 1:
        return None
    return (
        f"it is a product of {product.rows} rows and {product.columns} columns, which come in tiles"
    )


def _decisions(sizes: RowSizes, target: CudaTarget) -> tuple[Decision, ...]:
    repeated = sizes.plain.repeated
    widest = sizes.widest
    vectors = tuple(v for v in (1, 2, 4, 8, 16) if widest // 2 <= v <= widest)
    storage = ROW_STORAGE if repeated else ROW_STORAGE[2:]
    fused = len(sizes.online.passes) < len(sizes.plain.passes)
    late = len(repeated) < len(sizes.plain.elements)
    invariant = sizes.common and repeated
    clustered = target.has("cluster") and sizes.real == 4 and not sizes.spreads
    return (
        Decision("vector", vectors),
        Decision("lanes", LANES[1:] if sizes.lies_along_rows else LANES[:1]),
        Decision("row_threads", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
        Decision("block_rows", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)),
        Decision("thread_rows", (1, 2, 4)),
        Decision("cluster", (1, 2, 4, 8, 16) if clustered else (1,)),
        Decision("row_storage", storage),
        Decision("convert", CONVERT if sizes.holds_pairs else CONVERT[:1]),
        Decision("passes", ("plain", "online") if fused else ("plain",)),
        Decision("prefetch", (0, 1) if repeated and late else (0,)),
        Decision("unroll", (1, 2, 4, 8)),
        Decision("loads", ("cached", "stream")),
        Decision("stores", ("cached", "stream")),
        Decision("blocks_per_sm", (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)),
        Decision("tile_scheduler", ("tiles", "persistent")),
        Decision("stages", (1, 2, 3, 4, 6) if repeated else (1,)),
        Decision("row_invariants", ROW_INVARIANTS if invariant else ROW_INVARIANTS[:1]),
        Decision("idle_clusters", IDLE_CLUSTERS if clustered else IDLE_CLUSTERS[:1]),
    )
