"""The template of matrix products by ordinary multiply-adds: its decisions, rules and quantities.

``spaces.cuda.simt.code`` prints the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cuda.blocks.code import BlockCode
from tilewright.spaces.cuda.blocks.finish import why_no_finish
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.partial_sums import WAYS
from tilewright.spaces.cuda.blocks.sizes import RingSizes
from tilewright.spaces.cuda.blocks.template import BlockTemplate
from tilewright.spaces.cuda.blocks.tile_grid import grid_decisions, why_too_long
from tilewright.spaces.cuda.blocks.traffic import Blocks
from tilewright.spaces.cuda.simt.code import SimtCode
from tilewright.spaces.cuda.simt.rules import SPREADS, simt_rules
from tilewright.spaces.cuda.simt.sizes import SimtSizes
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Decision, Rule


class Simt(BlockTemplate):
    """``output[m, n] = epilogue(sum_k left[m, k] * right[k, n])``, each product one instruction.

    Elements are multiplied in the type of the sums: float64, float32 (also for smaller floating
    point types, exactly), or int32.
    """

    name: ClassVar[str] = "simt"
    version: ClassVar[int] = 2
    recomputes: ClassVar[bool] = True
    writes_apart: ClassVar[bool] = True

    code: ClassVar[type[BlockCode]] = SimtCode
    size: ClassVar[type[RingSizes]] = SimtSizes
    sizes: SimtSizes

    @classmethod
    def refuses_product(cls, product: Tiled, target: CudaTarget) -> str | None:
        """Return why a product has a dtype or an epilogue beyond this GPU, in words; else None."""
        for operand in product.whole.operands:
            if operand.dtype.startswith("float8") and not target.has("mma_fp8"):
                return f"{operand.name} is {operand.dtype}, which {target.name} does not convert"
        return why_no_finish(product) or why_too_long(product)

    def restrictions(self) -> Sequence[Rule]:
        """Return the rules; see ``spaces.cuda.simt.rules``."""
        return simt_rules(self.sizes, self.cuda, self.decisions)

    def blocks(self, c: Any) -> Blocks:
        """Return what blocks do in a step: multiply-adds of a tile, reads of vectors, copies."""
        sizes = self.sizes
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
            ahead=sizes.stages(c) - 1,
        )

    def choices(self) -> Sequence[Decision]:
        """Return the decisions: tiles of threads, warps and blocks, and how these share the
        work."""
        return (
            Decision("lane_rows", (1, 2, 4, 8, 16, 32)),
            Decision("thread_rows", (1, 2, 4, 8, 16)),
            Decision("thread_columns", (1, 2, 4, 8, 16)),
            Decision("warp_rows", (1, 2, 4, 8)),
            Decision("warp_columns", (1, 2, 4, 8)),
            Decision("depth", (8, 16, 32, 64)),
            Decision("copy_spread", SPREADS),
            Decision("blocks_per_sm", (1, 2, 3, 4, 6, 8)),
            *grid_decisions(),
            Decision("merge", WAYS),
        )
