"""The CPU template for matrix products whose rows repay packed panels.

Decisions: pairs or single terms to ``multiply``, the register tile, the workers of each kind, the
order of tiles, which operands are packed, bounds of the cache blocks, ``unroll`` and ``prefetch``.
Bounds come from the machine's caches and are no divisors of the input:
``spaces.cpu.blocked.blocking`` computes the blocks of a given size, ``spaces.cpu.blocked.rules``
says which decisions go together, and ``spaces.cpu.blocked.code`` writes the kernel.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import FLOAT, Code, c_kernel
from tilewright.spaces.cpu.blocked.rules import contraction_rules
from tilewright.spaces.cpu.blocked.traffic import contraction_quantities
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.thin.blocking import THIN_ROWS
from tilewright.spaces.cpu.tiles.decisions import TILE_ROWS, TILE_VECTORS, unrolls
from tilewright.spaces.cpu.tiles.panels import why_not_packed, why_not_thin
from tilewright.spaces.cpu.vectors.simd import FLOATS
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.open_axis import why_no_open_batch, why_no_open_rows
from tilewright.spaces.workloads.product import Product
from tilewright.spaces.workloads.several import product_writing
from tilewright.spaces.workloads.workload import Workload

PANEL_WIDTH = 32
"""The columns of a typical panel; its depth is at least what L1 holds, and at most what half of L2
does."""


class BlockedTemplate(CpuTemplate):
    """``output[m, n] = epilogue(sum_k left[m, k] * right[k, n])`` in cache blocks, once or for each
    product of a batch."""

    name: ClassVar[str] = "contraction"
    version: ClassVar[int] = 4

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        product = product_writing(workload, packed=True, sliced=True)
        assert isinstance(product, Product)
        self.product = product
        self.lanes = self.cpu.lanes(FLOAT)
        self.decisions = self._decisions()
        self.rules = contraction_rules(self.product, self.cpu, self.decisions)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: no product of matrices, a type that is neither loaded nor
        stored, or so few rows that a thin template serves better."""
        for operand in workload.operands:
            if operand.dtype not in FLOATS:
                return f"{operand.name} is {operand.dtype}; allowed: {', '.join(FLOATS)}"
        product = product_writing(workload, packed=True, sliced=True)
        if isinstance(product, str):
            return product
        if reason := why_not_packed(product, cpu):
            return reason
        if product.rows > THIN_ROWS or (product.right.packed and why_not_thin(product)):
            return None
        return (
            f"{product.rows} rows along {product.row} do not repay packed panels; "
            f"needs more than {THIN_ROWS}"
        )

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.blocked.traffic``."""
        return contraction_quantities(self.product, self.cpu, columns)

    def _code(self, schedule: Schedule, entry: str, **opened: bool) -> Code:
        from tilewright.spaces.cpu.blocked.code import ContractionCode

        return ContractionCode(self.product, schedule.values, self.lanes, entry, **opened)

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why an axis cannot be open: only that of rows can, or the slowest of a batch."""
        why_not = why_no_open_batch if self.product.batch else why_no_open_rows
        return why_not(self.product, axis)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of rows or of products, up to the product's."""
        opened = {"batch_is_open" if self.product.batch else "is_open": True}
        code = self._code(schedule, f"{self.entry(schedule)}_open", **opened)
        return c_kernel(self.workload, self._prelude(), code)

    # -- the space -----------------------------------------------------------------------------

    def _decisions(self) -> tuple[Decision, ...]:
        cpu = self.cpu
        least_depth = cpu.l1_bytes // (FLOAT * PANEL_WIDTH)
        depths = _geometric(least_depth, cpu.l2_bytes // (2 * FLOAT * PANEL_WIDTH), halves=True)
        inputs = {operand.dtype for operand in self.product.matmul.factors}
        pairs = cpu.bf16_dot and inputs == {"bfloat16"}
        workers = cpu.even_workers
        ways = ("fma", "dot") if pairs else ("fma",)
        packed = self.product.right.packed
        return (
            Decision("multiply", ways[-1:] if packed else ways),
            Decision("tile_rows", TILE_ROWS),
            Decision("tile_vectors", TILE_VECTORS),
            Decision("row_workers", workers),
            Decision("column_workers", workers),
            *([Decision("batch_workers", workers)] if self.product.batch else []),
            Decision("order", ("columns_outer", "rows_outer")),
            Decision("pack_left", (False, True)),
            Decision("pack_right", (False,) if packed else (False, True)),
            Decision("block_depth", depths),
            Decision("block_rows", _geometric(32, cpu.l2_bytes // (FLOAT * least_depth))),
            Decision("block_columns", _geometric(64, cpu.l3_bytes // (4 * 1024))),
            Decision("unroll", unrolls(cpu)),
            Decision("prefetch", (False, True)),
        )


def _geometric(least: int, most: int, halves: bool = False) -> tuple[int, ...]:
    """Return powers of two times ``least`` up to ``most``, with the points half-way if ``halves``.

    If unusual caches leave none, return ``least`` alone.
    """
    values, value = [], least
    while value <= most:
        values += [value, value * 3 // 2] if halves else [value]
        value *= 2
    return tuple(value for value in values if value <= most) or (least,)
