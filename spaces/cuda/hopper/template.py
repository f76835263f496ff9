"""The template of matrix products on Hopper: its decisions, rules and quantities.

``spaces.cuda.hopper.code`` prints the kernel, ``spaces.cuda.hopper.plan`` explains its terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cuda.blocks.finish import prelude
from tilewright.spaces.cuda.blocks.implicit import (
    ImplicitProduct,
    Tiled,
    tiled_product_of,
    why_no_open_product,
)
from tilewright.spaces.cuda.blocks.segments import segments_of
from tilewright.spaces.cuda.blocks.tile_grid import GROUPS, RASTERS, SPLITS
from tilewright.spaces.cuda.blocks.traffic import Blocks, grid_quantities
from tilewright.spaces.cuda.hopper.code import HopperCode
from tilewright.spaces.cuda.hopper.fetched import fetched_of
from tilewright.spaces.cuda.hopper.grid import ORDERS
from tilewright.spaces.cuda.hopper.imbalance import imbalance
from tilewright.spaces.cuda.hopper.multiply import ELEMENTS
from tilewright.spaces.cuda.hopper.places import why_no_open_map, why_no_placed_map
from tilewright.spaces.cuda.hopper.plan import HopperPlan
from tilewright.spaces.cuda.hopper.rules.every import hopper_rules
from tilewright.spaces.cuda.hopper.segments import PARTS, trims_of
from tilewright.spaces.cuda.hopper.sizes import CLUSTERS, HopperSizes, promotes
from tilewright.spaces.cuda.hopper.split import WAYS
from tilewright.spaces.cuda.hopper.streams import has_streams
from tilewright.spaces.cuda.hopper.tile import BLOCK, MOST_NUMBERS, STEP_BYTES, why_no_tensor_map
from tilewright.spaces.cuda.occupancy import LINE, LINE_SLOTS
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import WarpgroupTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.quantities import widened
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.product import Product
from tilewright.spaces.workloads.workload import Workload

NEIGHBOURS = 8
"""Neighbouring elements of an output row that a warp stores at a time: pairs of four lanes."""


class Hopper(WarpgroupTemplate):
    """``output[m, n] = epilogue(sum_k left[m, k] * right[k, n])`` on tensor cores of Hopper.

    Operands are float16, bfloat16, tfloat32 or float8, sums float32; TMA loads them, wgmma
    multiplies. Of tfloat32, wgmma drops the bits it does not read.
    """

    name: ClassVar[str] = "hopper"
    version: ClassVar[int] = 8

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        product = self.multiplied(workload)
        assert not isinstance(product, str)
        self.product = product
        self.sizes = HopperSizes(self.product)
        self.decisions = tuple(self.choices())
        self.rules = hopper_rules(self.sizes, self.cuda, self.decisions)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one.

        Reasons are no product of matrices, a dtype that wgmma does not multiply, or an operand that
        TMA cannot load.
        """
        product = cls.multiplied(workload)
        if isinstance(product, str):
            return product
        for operand in (product.left, product.right):
            if operand.dtype not in ELEMENTS or operand.dtype != product.left.dtype:
                return f"{operand.name} is {operand.dtype}; allowed: {', '.join(ELEMENTS)}"
        for written in product.written:
            if written.array.element.is_integer:
                return f"the output is {written.array.dtype}; allowed: floating point"
        if isinstance(product, ImplicitProduct):
            return why_no_placed_map(product)
        return _why_no_matrix_map(product)

    @classmethod
    def multiplied(cls, workload: Workload) -> Tiled | str:
        """Return the product that tiles are computed of; or why there is none, in words."""
        return tiled_product_of(workload)

    def choices(self) -> Sequence[Decision]:
        """Return the decisions."""
        return _decisions(self.product, self.cuda)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.blocks.traffic``.

        A cluster loads what its blocks share once. TMA moves lines: a row of half a line takes as
        long as one of a whole line.
        """
        c = widened(columns)
        sizes = self.sizes
        hilbert = c["raster"] == "hilbert"
        square = int(np.sqrt(self.cuda.multiprocessors))
        walk = {
            **c,
            "raster": np.where(hilbert, "along_columns", c["raster"]),
            "raster_group": np.where(hilbert, square, c["raster_group"]),
        }
        found = grid_quantities(self.product, self.cuda, self._blocks(sizes, c), walk)
        m, n = sizes.cluster(c)
        filled = sizes.filled(c)
        along_n = c["block_n"] / m * filled
        loaded = (c["block_m"] / n + along_n) / (c["block_m"] + c["block_n"])
        loaded = loaded * np.maximum(LINE / (c["depth"] * sizes.element), 1.0)
        registers = (sizes.results(c) + sizes.spare).astype(np.float64)
        return {
            **found,
            "flops": found["flops"] * filled,
            "near_bytes": found["near_bytes"] * loaded,
            "registers": registers,
            "register_fraction": registers / sizes.group_registers(c),
            "instructions": found["instructions"]
            + LINE_SLOTS * self.sectors_apart(c) * found["epilogue_elements"],
            "imbalance": imbalance(sizes, self.cuda, c),
        }

    def sectors_apart(self, c: Any) -> Any:
        """Return the sectors per output that pass L1 beside TMA, at one sector a cycle.

        A warp that stores or loads by itself has eight neighbours of a row in four lanes.
        """
        passes = 1.0 * (c["store_buffers"] == 0)
        if fetched_of(self.product) is not None:
            passes = passes + np.logical_not(c["fetch"])
        return passes / NEIGHBOURS

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        return self._kernel(schedule, self.sizes, self.entry(schedule))

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Return why an axis cannot be open: only the rows of one matrix, or images, can, in orders
        that do not depend on their number."""
        product = self.product
        if schedule.values["raster"] == "hilbert":
            return "a Hilbert curve is that of one number of rows"
        if reason := why_no_open_product(product, axis):
            return reason
        return why_no_open_map(product) if isinstance(product, ImplicitProduct) else None

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of rows, up to the product's."""
        sizes = replace(self.sizes, product=replace(self.product, is_open=True))
        return self._kernel(schedule, sizes, f"{self.entry(schedule)}_open")

    def _kernel(self, schedule: Schedule, sizes: HopperSizes, entry: str) -> Kernel:
        plan = HopperPlan(sizes, self.cuda, schedule.values)
        return HopperCode(plan, entry).kernel(prelude(self.product))

    def _blocks(self, sizes: HopperSizes, c: Any) -> Blocks:
        """Return what blocks do and take, for :func:`grid_quantities`.

        A warp issues a wgmma for each block of 64 rows and 32 bytes of depth. Blocks count as
        having all the registers that their residency leaves them.
        """
        rows, columns = sizes.block(c)
        threads = sizes.threads(c)
        parts = c["depth"] * sizes.element // STEP_BYTES
        products = c["block_m"] // BLOCK * parts
        working = np.where(c["schedule"] == "pingpong", 1, c["consumers"])
        return Blocks(
            rows=rows,
            columns=columns,
            depth=c["depth"],
            threads=threads,
            registers=sizes.launch_registers(c),
            shared_bytes=sizes.shared_bytes(c),
            step_instructions=4 * (products + 25 * working) + 20,
            step_loads=2,
            step_multiplies=4 * products,
            step_register_bytes=products * (BLOCK + c["block_n"]) * STEP_BYTES,
            chains=sizes.row_blocks(c) * (1 + c["in_flight"]),
            vector_fraction=1.0,
            ahead=np.maximum(c["stages"] - 1 - c["in_flight"], 1),
            most_resident=c["blocks_per_sm"],
        )


def _decisions(product: Tiled, target: CudaTarget) -> tuple[Decision, ...]:
    element, segments = product.left.element.bytes, segments_of(product)
    return (
        Decision("swap_ab", (False, True)),
        Decision("block_m", (64, 128, 192, 256)),
        Decision("block_n", tuple(range(16, 257, 16))),
        Decision("merge", WAYS[:1] if segments else WAYS),
        Decision("schedule", ("cooperative", "pingpong")),
        Decision("consumers", (1, 2, 3)),
        Decision("producer_registers", (0, 24, 32, 40, 56)),
        Decision("blocks_per_sm", (1, 2)),
        Decision("cluster", tuple(CLUSTERS)),
        Decision("depth", tuple(size // element for size in _depths(product))),
        *((Decision("fetch", (False, True)),) if fetched_of(product) else ()),
        *((Decision("tail_rows", PARTS),) if trims_of(product) else ()),
        Decision("store_buffers", (0, 1, 2, 4)),
        Decision("stages", (2, 3, 4, 5, 6, 7, 8, 10, 12)),
        *((Decision("promotion_interval", (0, 1, 2, 4)),) if promotes(product) else ()),
        *((Decision("evict_first", (False, True)),) if has_streams(product, target) else ()),
        Decision("in_flight", (0, 1)),
        Decision("splits", SPLITS),
        Decision("raster", RASTERS if segments else ORDERS),
        Decision("raster_group", GROUPS),
    )


def _depths(product: Tiled) -> tuple[int, ...]:
    """Return the bytes of depth that a step may have.

    Only plain matrices may have 256: they are loaded in several slabs of 128.
    """
    return (64, 128, 256) if isinstance(product, Product) else (64, 128)


def _why_no_matrix_map(product: Product) -> str | None:
    """Return why TMA cannot load the factors, matrices or batches of them; None if it can."""
    for operand in (product.left, product.right):
        if operand.element.bytes != 2 and operand.stride(product.depth) != 1:
            return (
                f"{operand.name} is {operand.dtype} and does not run along {product.depth} in "
                "memory; wgmma multiplies only elements of 2 bytes otherwise"
            )
        if reason := why_no_tensor_map(operand):
            return reason
    operands = (product.left, product.right, *(each.array for each in product.written))
    most = max(len(product.numbering(operand, Index())) for operand in operands)
    if most > MOST_NUMBERS:
        return f"{most} strides lead from matrix to matrix; allowed: {MOST_NUMBERS}"
    return None
