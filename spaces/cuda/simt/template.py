"""Contractions by ordinary multiply-adds, for any GPU: what can be decided, and what rules it.

See ``spaces.cuda.simt.code`` for the kernel.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from spaces.cuda.blocks.finish import prelude, why_no_finish
from spaces.cuda.blocks.implicit import tiled_product_of
from spaces.cuda.blocks.partial_sums import WAYS
from spaces.cuda.blocks.tile_grid import grid_decisions
from spaces.cuda.blocks.traffic import Blocks, grid_quantities
from spaces.cuda.simt.code import SimtCode
from spaces.cuda.simt.rules import SPREADS, SimtSizes, simt_rules
from spaces.cuda.target import CudaTarget
from spaces.kernel import Kernel
from spaces.quantities import widened
from spaces.schedule import Schedule
from spaces.target import Target
from spaces.template import Columns, Decision, Template
from spaces.workloads.workload import Workload


class Simt(Template):
    """``output[m, n] = epilogue(sum_k left[m, k] * right[k, n])``, each product one instruction.

    Elements are multiplied in the type of the sums: float64, float32 (also for smaller floating
    point types, exactly), or int32.
    """

    name: ClassVar[str] = "simt"
    version: ClassVar[int] = 2

    def __init__(self, workload: Workload, target: Target) -> None:
        assert isinstance(target, CudaTarget)
        super().__init__(workload, target)
        self.cuda = target
        product = tiled_product_of(workload)
        assert not isinstance(product, str)
        self.product = product
        self.decisions = _decisions()
        self.rules = simt_rules(self.product, target, self.decisions)

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Why not: no product of matrices, a type or an epilogue beyond this GPU."""
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        for operand in workload.operands:
            if operand.dtype.startswith("float8") and not target.has("mma_fp8"):
                return f"{operand.name} is {operand.dtype}, which {target.name} does not convert"
        product = tiled_product_of(workload)
        if isinstance(product, str):
            return product
        return why_no_finish(workload)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """See ``spaces.cuda.blocks.traffic``."""
        wide = widened(columns)
        return grid_quantities(self.product, self.cuda, self._blocks(wide), wide)

    def lower(self, schedule: Schedule) -> Kernel:
        """The kernel; its entry is named after the workload and the schedule."""
        return SimtCode(self.product, schedule.values, self.entry(schedule)).kernel(
            prelude(self.product.workload)
        )

    def _blocks(self, c: Any) -> Blocks:
        sizes = SimtSizes(self.product)
        rows, columns = sizes.block(c)
        threads = sizes.threads(c)
        vector = min(sizes.vector(self.product.left), sizes.vector(self.product.right))
        warps = threads // 32
        high, wide = sizes.vectors(c)
        multiplies = warps * c["depth"] * c["thread_rows"] * c["thread_columns"]
        loads = warps * c["depth"] * (c["thread_rows"] // high + c["thread_columns"] // wide)
        fetches = 2 * (rows + columns) * c["depth"] / (32 * vector)
        return Blocks(
            rows=rows,
            columns=columns,
            depth=c["depth"],
            threads=threads,
            registers=np.minimum(sizes.registers(c), sizes.register_limit(self.cuda, c)),
            shared_bytes=sizes.shared_bytes(c),
            step_instructions=multiplies + loads + 2 * fetches + 10 * warps,
            step_loads=loads,
            step_multiplies=multiplies,
            step_register_bytes=warps
            * c["depth"]
            * sizes.bytes
            * (sizes.lane_rows(c) * c["thread_rows"] + sizes.lane_columns(c) * c["thread_columns"]),
            chains=c["thread_rows"] * c["thread_columns"],
            vector_fraction=vector * self.product.left.element.bytes / 16,
        )


def _decisions() -> tuple[Decision, ...]:
    return (
        Decision("lane_rows", (1, 2, 4, 8, 16, 32)),
        Decision("thread_rows", (1, 2, 4, 8, 16)),
        Decision("thread_columns", (1, 2, 4, 8, 16)),
        Decision("warp_rows", (1, 2, 4, 8)),
        Decision("warp_columns", (1, 2, 4, 8)),
        Decision("depth", (8, 16, 32, 64)),
        Decision("spread", SPREADS),
        Decision("residency", (1, 2, 3, 4, 6, 8)),
        *grid_decisions(),
        Decision("exchange", WAYS),
    )
