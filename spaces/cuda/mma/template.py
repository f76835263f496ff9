"""Contractions by ``mma.sync``, for tensor cores since sm_80: what can be decided.

See ``spaces.cuda.mma.code`` for the kernel and ``spaces.cuda.mma.rules`` for what is ruled out.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from spaces.cuda.blocks.finish import prelude
from spaces.cuda.blocks.implicit import tiled_product_of
from spaces.cuda.blocks.partial_sums import WAYS
from spaces.cuda.blocks.tile_grid import grid_decisions
from spaces.cuda.blocks.traffic import Blocks, grid_quantities
from spaces.cuda.mma.accumulators import STORES
from spaces.cuda.mma.code import INSTRUCTIONS, MmaCode
from spaces.cuda.mma.fragments import FRAGMENT
from spaces.cuda.mma.rules import MmaSizes, mma_rules
from spaces.cuda.target import CudaTarget
from spaces.kernel import Kernel
from spaces.quantities import widened
from spaces.schedule import Schedule
from spaces.target import Target
from spaces.template import Columns, Decision, Template
from spaces.workloads.workload import Workload

DEPTH_BYTES = (32, 64, 128, 256)
"""Bytes of a row of a tile, along the depth."""


class Mma(Template):
    """``output[m, n] = epilogue(sum_k left[m, k] * right[k, n])`` on tensor cores.

    float16, bfloat16, tf32 and float8 are summed in float32, int8 in int32. float32 is not
    served: it would lose bits that the workload asks for.
    """

    name: ClassVar[str] = "mma"
    version: ClassVar[int] = 1

    def __init__(self, workload: Workload, target: Target) -> None:
        assert isinstance(target, CudaTarget)
        super().__init__(workload, target)
        self.cuda = target
        product = tiled_product_of(workload)
        assert not isinstance(product, str)
        self.product = product
        self.sizes = MmaSizes(self.product)
        self.decisions = _decisions(self.sizes.bytes)
        self.rules = mma_rules(self.product, target, self.decisions)

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Why not: no product of matrices, or no instruction for its types on this GPU."""
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        product = tiled_product_of(workload)
        if isinstance(product, str):
            return product
        kinds = {product.left.dtype, product.right.dtype}
        if len(kinds) > 1 or not kinds <= set(INSTRUCTIONS):
            return f"multiplies {' by '.join(sorted(kinds))}; allowed: {', '.join(INSTRUCTIONS)}"
        if "int8" in kinds and product.workload.accumulator != "int32":
            return f"int8 is summed in {product.workload.accumulator}; allowed: int32"
        feature = "mma_fp8" if kinds.pop().startswith("float8") else "mma"
        return None if target.has(feature) else f"{target.name} lacks the instruction ({feature})"

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """See ``spaces.cuda.blocks.traffic``."""
        wide = widened(columns)
        return grid_quantities(self.product, self.cuda, self._blocks(wide), wide)

    def lower(self, schedule: Schedule) -> Kernel:
        """The kernel; its entry is named after the workload and the schedule."""
        return MmaCode(self.product, schedule.values, self.entry(schedule)).kernel(
            prelude(self.product.workload)
        )

    def _blocks(self, c: Any) -> Blocks:
        sizes = self.sizes
        rows, columns = sizes.block(c)
        threads = sizes.threads(c)
        warps = threads // 32
        high, wide = c["tile_rows"] // FRAGMENT, c["tile_columns"] // FRAGMENT
        steps = c["depth"] * sizes.bytes // 32
        multiplies, loads = warps * steps * high * wide * 2, warps * steps * (high + wide)
        vector = min(sizes.vector(self.product.left), sizes.vector(self.product.right))
        fetches = (rows + columns) * c["depth"] / (32 * vector)
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
            step_register_bytes=loads * 512,
            chains=high * wide * 2,
            vector_fraction=vector * sizes.bytes / 16,
        )


def _decisions(element_bytes: int) -> tuple[Decision, ...]:
    return (
        Decision("tile_rows", (16, 32, 64, 128)),
        Decision("tile_columns", (16, 32, 64, 128)),
        Decision("warp_rows", (1, 2, 4, 8)),
        Decision("warp_columns", (1, 2, 4, 8)),
        Decision("store", STORES),
        Decision("depth", tuple(size // element_bytes for size in DEPTH_BYTES)),
        Decision("stages", (2, 3, 4, 5, 6)),
        Decision("residency", (1, 2, 3, 4, 6, 8)),
        *grid_decisions(),
        Decision("exchange", WAYS),
    )
