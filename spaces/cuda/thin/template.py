"""The template of products with few rows, or few columns, that read their large operand once.

``spaces.cuda.thin.code`` prints the kernel; ``spaces.cuda.thin.rules`` says which schedules are
refused.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cuda.blocks.finish import prelude, why_no_finish, why_no_sum
from tilewright.spaces.cuda.blocks.partial_sums import WAYS
from tilewright.spaces.cuda.blocks.traffic import Blocks, grid_quantities
from tilewright.spaces.cuda.occupancy import LINE_SLOTS, SECTOR
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.cuda.thin.code import ThinCode
from tilewright.spaces.cuda.thin.product import MOST_FEW
from tilewright.spaces.cuda.thin.rules import thin_rules
from tilewright.spaces.cuda.thin.sizes import ThinSizes
from tilewright.spaces.cuda.thin.small import SOURCES
from tilewright.spaces.cuda.thin.tile import READS
from tilewright.spaces.cuda.thin.ways import WAYS as MULTIPLY
from tilewright.spaces.cuda.thin.ways import by_way
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.quantities import widened
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.open_axis import why_no_open_rows
from tilewright.spaces.workloads.product import Product
from tilewright.spaces.workloads.several import product_writing
from tilewright.spaces.workloads.workload import Workload


class CudaThin(CudaTemplate):
    """``output[m, n] = epilogue(sum_k left[m, k] * right[k, n])`` with 1 to 16 rows or columns.

    Elements are multiplied in the type of the sums or, for float16 and bfloat16, by ``mma.sync``.
    """

    name: ClassVar[str] = "thin"
    version: ClassVar[int] = 2

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        product = product_writing(workload, sliced=True)
        assert isinstance(product, Product)
        self.product = product
        self.sizes = ThinSizes(self.product)
        self.decisions = _decisions(self.sizes)
        self.rules = tuple(thin_rules(self.sizes, self.cuda, self.decisions))

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one.

        Reasons are no product of matrices, too many rows, a type or an epilogue beyond this GPU.
        """
        for operand in workload.operands:
            if operand.dtype.startswith("float8") and not cuda.has("mma_fp8"):
                return f"{operand.name} is {operand.dtype}, which {cuda.name} does not convert"
        product = product_writing(workload, sliced=True)
        if isinstance(product, str):
            return product
        if reason := why_no_finish(product) or why_no_sum(product):
            return reason
        few = min(product.rows, product.columns)
        if few > MOST_FEW:
            return f"needs at most {MOST_FEW} rows or columns of the output; there are {few}"
        return None

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.blocks.traffic``."""
        wide = widened(columns)
        shape = wide["splits"].shape
        walk = {
            **wide,
            "raster": np.full(shape, "along_columns"),
            "raster_group": np.ones(shape, int),
        }
        found = grid_quantities(self.product, self.cuda, self._blocks(wide), walk)
        written = found["epilogue_elements"] * self.sectors_written
        return {**found, "instructions": found["instructions"] + LINE_SLOTS * written}

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        code = ThinCode(self.sizes, schedule.values, self.entry(schedule))
        return code.kernel(prelude(self.product))

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why an axis cannot be open: only that of rows can."""
        return why_no_open_rows(self.product, axis)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of rows, up to the product's."""
        code = ThinCode(self.sizes.opened(), schedule.values, f"{self.entry(schedule)}_open")
        return code.kernel(prelude(self.product))

    @property
    def sectors_written(self) -> float:
        """Sectors that leave L1, one a cycle, for each output: one where lanes write apart."""
        apart = self.sizes.thin.written_stride * self.product.output.element.bytes
        return min(apart, SECTOR) / SECTOR

    def _blocks(self, c: Any) -> Blocks:
        sizes, thin = self.sizes, self.sizes.thin
        rows, columns = sizes.block(c)
        warps = sizes.threads(c) // 32
        elements = c["thread_columns"] * c["thread_depth"]
        matrices = by_way(c, lambda way: way.matrices)
        multiplies = by_way(c, lambda way: way.multiplies(thin.few, elements))
        loads = elements // thin.large_vector
        return Blocks(
            rows=rows,
            columns=columns,
            depth=sizes.depth(c),
            threads=sizes.threads(c),
            registers=np.minimum(sizes.registers(c), sizes.register_limit(self.cuda, c)),
            shared_bytes=sizes.shared_bytes(c),
            step_instructions=warps * (multiplies + loads + np.where(matrices, 0, elements) + 10),
            step_loads=warps * loads,
            step_multiplies=warps * multiplies,
            step_register_bytes=sizes.threads(c) * elements * sizes.bytes,
            chains=np.maximum(multiplies // np.maximum(c["thread_depth"], 1), 1),
            vector_fraction=thin.large_vector * sizes.bytes / 16,
            ahead=c["in_flight"],
            most_resident=c["blocks_per_sm"],
        )


def _decisions(sizes: ThinSizes) -> tuple[Decision, ...]:
    return (
        Decision("multiply", tuple(MULTIPLY) if sizes.serves_matrices else ("fma",)),
        Decision("lane_columns", (1, 2, 4, 8, 16, 32)),
        Decision("thread_columns", (1, 2, 4, 8, 16)),
        Decision("thread_depth", (1, 2, 4, 8, 16, 32, 64)),
        Decision("in_flight", (1, 2)),
        Decision("small_operand", SOURCES),
        Decision("load_order", READS if sizes.serves_rows else READS[:1]),
        Decision("splits", (1, 2, 3, 4, 6, 8)),
        Decision("warp_columns", (1, 2, 4, 8)),
        Decision("warp_depth", (1, 2, 4, 8, 16)),
        Decision("blocks_per_sm", (1, 2, 3, 4, 6, 8)),
        Decision("fetch", (0, 128, 256)),
        Decision("merge", WAYS),
    )
