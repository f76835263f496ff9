"""The template of sums over overlapping windows whose neighbours in memory are too few to copy.

Such is a network's first convolution: three channels do not fill a wide copy. The window of the
image that a tile's rows read is copied once, line by line, and fragments of ``mma.sync`` are taken
out of it. ``spaces.cuda.windows.code`` prints the kernel; ``spaces.cuda.windows.rules`` says which
schedules are refused.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.finish import prelude
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, tiled_product_of
from tilewright.spaces.cuda.mma.accumulators import STORES
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.occupancy import Occupancy
from tilewright.spaces.cuda.target import VECTOR_BYTES, CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.cuda.windows.code import WindowCode
from tilewright.spaces.cuda.windows.image import Image
from tilewright.spaces.cuda.windows.plan import WindowPlan
from tilewright.spaces.cuda.windows.rules import window_rules
from tilewright.spaces.cuda.windows.sizes import WindowSizes
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

KINDS = ("float16", "bfloat16")
LEAST_TILE = 16
"""Rows and columns of the smallest tile."""


class CudaWindows(CudaTemplate):
    """``output[m, n] = epilogue(sum_k left[m, k] * right[k, n])``, where the left rows overlap.

    Rows of the left factor overlap in memory. Products are by tensor cores, sums float32.
    """

    name: ClassVar[str] = "windows"
    version: ClassVar[int] = 1
    feature: ClassVar[str] = "mma"
    needs: ClassVar[str] = "needs a CUDA target with tensor cores"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        product = tiled_product_of(workload)
        assert isinstance(product, ImplicitProduct)
        self.product, self.sizes = product, WindowSizes(product)
        self.decisions = (
            Decision("tile_rows", (16, 32, 64, 128)),
            Decision("tile_columns", (16, 32, 64, 128)),
            Decision("warp_rows", (1, 2, 4, 8)),
            Decision("warp_columns", (1, 2, 4, 8)),
            Decision("store_path", STORES),
            Decision("coarsening", (1, 2, 4, 8, 16)),
            Decision("blocks_per_sm", (1, 2, 3, 4, 6, 8)),
        )
        self.rules = window_rules(self.sizes, self.cuda, self.decisions)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one.

        Reasons are no windows that overlap, or windows that wide copies can gather.
        """
        product = tiled_product_of(workload)
        if isinstance(product, str):
            return product
        kinds = {product.left.dtype, product.right.dtype}
        if len(kinds) > 1 or not kinds <= set(KINDS):
            return f"multiplies {' by '.join(sorted(kinds))}; allowed: {', '.join(KINDS)}"
        if not isinstance(product, ImplicitProduct) or product.view.segments:
            return "needs rows that overlap in memory"
        return _why_no_window(product, cuda)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.quantities``.

        Blocks copy to shared memory from L2; only first reads come from memory.
        """
        c, sizes, product = widened(columns), self.sizes, self.product
        (rows, wide), (high, broad) = sizes.block(c), sizes.tiles(c)
        tiles, blocks = high * broad, sizes.blocks(c) * broad
        steps, warps = sizes.depth // FRAGMENT, sizes.threads(c) // 32
        tall, across = c["tile_rows"] // FRAGMENT, c["tile_columns"] // FRAGMENT
        multiplies = 2 * tall * across
        loads = tall * (4 if sizes.image.runs.paired else 8) + across + 2
        fills = sizes.vectors(c) * 20 / 32 + ceil_div(wide * sizes.depth, 32) * 20 / c["coarsening"]
        main = float(product.whole.least_bytes)
        shared = sizes.shared_bytes(c)
        registers = np.minimum(sizes.registers(c), sizes.register_limit(self.cuda, c))
        occupancy = Occupancy(
            self.cuda, blocks, sizes.threads(c), registers, shared, c["blocks_per_sm"]
        )
        quantities = {
            "flops": 2.0 * tiles * rows * wide * sizes.depth,
            "useful_flops": float(product.whole.flops),
            "instructions": tiles * (warps * steps * (multiplies + 2.5 * loads) + fills),
            "register_bytes": 1.0 * tiles * warps * steps * (tall + across) * 512,
            "near_bytes": tiles * (sizes.vectors(c) * sizes.vector_bytes * 1.0)
            + blocks * (1.0 * wide * sizes.depth * sizes.element),
            "middle_bytes": main,
            "main_bytes": main,
            "packing_bytes": 0.0,
            "epilogue_elements": 1.0 * tiles * rows * wide * len(product.written),
            "far_fraction": main / self.cuda.l2_bytes,
            "vector_fraction": sizes.vector_bytes / VECTOR_BYTES,
            "intensity": multiplies / loads,
            "main_loop_trips": float(steps),
            "tile_visits": tiles,
            "synchronisations": 0.0,
            **occupancy.quantities(multiplies),
            **occupancy.flight(shared / sizes.threads(c)),
        }
        return filled(quantities, columns["coarsening"].shape)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        plan = WindowPlan(self.sizes, schedule.values)
        return WindowCode(plan, self.entry(schedule)).kernel(prelude(self.product))


def _why_no_window(product: ImplicitProduct, target: CudaTarget) -> str | None:
    gathered, view = product.gathered[0], product.view
    if product.batches > 1 or gathered.gather:
        return f"{product.batches} products; needs one, whose rows no table chooses"
    image, sizes = Image(product), WindowSizes(product)
    if sizes.vector(product.left) * sizes.element >= VECTOR_BYTES:
        return f"rows of {view.left.operand.name} are gathered {VECTOR_BYTES} bytes at a time"
    if product.reuse(product.left) <= 1 or not image.ascends:
        return f"rows of {view.left.operand.name} do not overlap, one behind the other"
    least = {
        "tile_rows": LEAST_TILE,
        "tile_columns": LEAST_TILE,
        "store_path": "direct",
        "coarsening": 1,
    }
    bytes = int(sizes.shared_bytes({**least, "warp_rows": 1, "warp_columns": 1}))
    if bytes > target.shared_per_block:
        most = target.shared_per_block
        return f"the smallest window takes {bytes} bytes of shared memory; allowed: {most}"
    return None
