"""The CUDA template of products with packed codes and few rows: what can be decided.

See ``spaces.cuda.low_bit.code`` for the kernel and ``spaces.cuda.low_bit.rules`` for what is ruled
out.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.loops.code import LIBRARY, PRELUDE
from tilewright.spaces.cuda.low_bit.decoding import Decoding
from tilewright.spaces.cuda.low_bit.rules import coded_rules
from tilewright.spaces.cuda.low_bit.sizes import CodedSizes
from tilewright.spaces.cuda.low_bit.traffic import coded_quantities
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.tree import AxisValue, Read
from tilewright.spaces.loops.plan import Plan
from tilewright.spaces.low_bit.served import known_zero, why_no_codes
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.workload import Workload

MOST_ROWS = 8
"""Rows of a block at most: more have too many sums."""


class CudaLowBit(CudaTemplate):
    """Products of activations and packed codes, with zero points and scales of groups."""

    name: ClassVar[str] = "low_bit"
    version: ClassVar[int] = 1
    reads_codes: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        found = coded_product_of(self.computation.program)
        assert isinstance(found, CodedProduct)
        self.product = found
        self.decisions = (
            Decision("tile_rows", found.row_parts(MOST_ROWS)),
            Decision("warp_tiles", (1, 2)),
            Decision("warp_columns", (1, 2, 4)),
            Decision("warp_depth", (1, 2, 4, 8, 16)),
            Decision("in_flight", (1, 2, 4)),
            Decision("block_depth", (1, 4, 16, 32, 64, 128)),
            Decision("splits", (1, 2, 4, 8, 16)),
            Decision("scales", ("late", "early") if found.scale is not None else ("late",)),
        )
        self.rules = coded_rules(found, self.cuda, self.decisions)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Refuse what is no product of codes and activations, and sums that are read elsewhere."""
        if reason := why_no_codes(workload, C_TYPES):
            return reason
        assert isinstance(workload, Computation)
        product = coded_product_of(workload.program)
        assert isinstance(product, CodedProduct)
        return _why_not_at_once(product)

    @cached_property
    def decoding(self) -> Decoding:
        """The way from codes to values."""
        product = self.product
        return Decoding(
            name=product.codes.dtype, table=product.table is not None, **known_zero(product)
        )

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """See ``spaces.cuda.low_bit.traffic``."""
        return coded_quantities(self.workload, self.product, self.decoding, self.cuda, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """The kernel; its entry is named after the workload and the schedule."""
        from tilewright.spaces.cuda.low_bit.code import CodedCode

        sizes = CodedSizes(self.product, schedule.values)
        called = (LIBRARY[name] for name in sorted(LIBRARY.keys() & self.workload.functions))
        code = CodedCode(sizes, self.decoding, self.arguments, self.entry(schedule))
        return code.kernel(PRELUDE + "".join(called))


def _why_not_at_once(product: CodedProduct) -> str | None:
    """Say why an element of the output does not follow from the sum at its own place."""
    axes = (*product.rows, product.column)
    own = Read(product.sums.name, tuple(map(AxisValue, axes)))
    stage = Plan(product.last).nests[-1].stage
    found = sorted(str(read) for read in stage.body.reads if read.name == own.name)
    if set(found) != {str(own)} or set(stage.axes) != set(axes):
        return f"{stage.name} reads the sum as {' and '.join(found)}; allowed: {own}"
    return None
