"""The template of matrix products by ``mma.sync``, for tensor cores since sm_80.

``spaces.cuda.mma.code`` prints the kernel; ``spaces.cuda.mma.rules`` says which schedules are
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cuda.blocks.code import BlockCode
from tilewright.spaces.cuda.blocks.copies.tile_copy import source_of
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.partial_sums import WAYS
from tilewright.spaces.cuda.blocks.sizes import RingSizes
from tilewright.spaces.cuda.blocks.template import BlockTemplate
from tilewright.spaces.cuda.blocks.tile_grid import grid_decisions
from tilewright.spaces.cuda.blocks.traffic import Blocks
from tilewright.spaces.cuda.mma.accumulators import STORES
from tilewright.spaces.cuda.mma.code import INSTRUCTIONS, MmaCode
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.mma.rules import mma_rules
from tilewright.spaces.cuda.mma.sizes import MmaSizes
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.template import Decision, Rule
from tilewright.spaces.workloads.array import Array

DEPTH_BYTES = (32, 64, 128, 256)
"""Bytes of a row of a tile, along the depth."""
FETCH, GATHER = 2, 24
"""Issue slots of a thread that fetches a vector of a matrix, and one of gathered elements.

Calibrated on an H200: with these, convolutions over 64 channels with channels first are predicted
as slow as they were.
"""


class Mma(BlockTemplate):
    """``output[m, n] = epilogue(sum_k left[m, k] * right[k, n])`` on tensor cores.

    float16, bfloat16, tf32 and float8 are summed in float32, int8 in int32. float32 is not served:
    it would lose bits that the workload asks for.
    """

    name: ClassVar[str] = "mma"
    version: ClassVar[int] = 1
    writes_apart: ClassVar[bool] = True

    code: ClassVar[type[BlockCode]] = MmaCode
    size: ClassVar[type[RingSizes]] = MmaSizes
    sizes: MmaSizes

    @classmethod
    def refuses_product(cls, product: Tiled, target: CudaTarget) -> str | None:
        """Return why this GPU has no instruction for a product's dtypes, in words; None if it
        has."""
        kinds = {product.left.dtype, product.right.dtype}
        if len(kinds) > 1 or not kinds <= set(INSTRUCTIONS):
            return f"multiplies {' by '.join(sorted(kinds))}; allowed: {', '.join(INSTRUCTIONS)}"
        if "int8" in kinds and product.whole.accumulator != "int32":
            return f"int8 is summed in {product.whole.accumulator}; allowed: int32"
        feature = "mma_fp8" if kinds.pop().startswith("float8") else "mma"
        return None if target.has(feature) else f"{target.name} lacks the instruction ({feature})"

    def restrictions(self) -> Sequence[Rule]:
        """Return the rules; see ``spaces.cuda.mma.rules``."""
        return mma_rules(self.sizes, self.cuda, self.decisions)

    def blocks(self, c: Any) -> Blocks:
        """Return what blocks do in a step: instructions of a tile, loads of fragments, copies."""
        sizes = self.sizes
        rows, columns = sizes.block(c)
        threads = sizes.threads(c)
        warps = threads // 32
        high, wide = c["tile_rows"] // FRAGMENT, c["tile_columns"] // FRAGMENT
        steps = c["depth"] * sizes.bytes // 32
        multiplies, loads = warps * steps * high * wide * 2, warps * steps * (high + wide)
        vector = min(sizes.vector(self.product.left), sizes.vector(self.product.right))
        sides = (self.product.left, rows), (self.product.right, columns)
        fetches = sum(self._fetching(operand) * extent for operand, extent in sides)
        return Blocks(
            rows=rows,
            columns=columns,
            depth=c["depth"],
            threads=threads,
            registers=np.minimum(sizes.registers(c), sizes.register_limit(self.cuda, c)),
            shared_bytes=sizes.shared_bytes(c),
            step_instructions=multiplies + loads + fetches * c["depth"] + 10 * warps,
            step_loads=loads,
            step_multiplies=multiplies,
            step_register_bytes=loads * 512,
            chains=high * wide * 2,
            vector_fraction=vector * sizes.bytes / 16,
            ahead=sizes.stages(c) - 1,
        )

    def _fetching(self, operand: Array) -> float:
        """Return the issue slots of a warp for each element that is fetched.

        It is a share of those of 32 vectors; an element that is gathered takes offsets and tests of
        borders.
        """
        slots = FETCH if source_of(self.product, operand) is not None else GATHER
        return slots / (WARP * self.sizes.vector(operand))

    def choices(self) -> Sequence[Decision]:
        """Return the decisions: tiles of warps and blocks, and how these share the work."""
        return (
            Decision("tile_rows", (16, 32, 64, 128)),
            Decision("tile_columns", (16, 32, 64, 128)),
            Decision("warp_rows", (1, 2, 4, 8)),
            Decision("warp_columns", (1, 2, 4, 8)),
            Decision("store_path", STORES),
            Decision("depth", tuple(size // self.sizes.bytes for size in DEPTH_BYTES)),
            Decision("stages", (2, 3, 4, 5, 6)),
            Decision("blocks_per_sm", (1, 2, 3, 4, 6, 8)),
            *grid_decisions(),
            Decision("merge", WAYS),
        )
