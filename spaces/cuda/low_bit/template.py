"""The CUDA template of products with packed codes: what can be decided.

See ``spaces.cuda.low_bit.code`` for the kernel and ``spaces.cuda.low_bit.rules`` for what is ruled
out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.loops.code import LIBRARY, PRELUDE
from tilewright.spaces.cuda.low_bit.decoding import Decoding
from tilewright.spaces.cuda.low_bit.pairs import FRACTIONS, PairDecoding
from tilewright.spaces.cuda.low_bit.rules import coded_rules
from tilewright.spaces.cuda.low_bit.sizes import COLUMNS, CodedSizes
from tilewright.spaces.cuda.low_bit.traffic import coded_quantities
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.program import Operand
from tilewright.spaces.language.tree import AxisValue, Read
from tilewright.spaces.loops.plan import Plan
from tilewright.spaces.low_bit.served import known_zero, why_no_codes
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.spaces.cuda.low_bit.matrix import MatrixCode
    from tilewright.spaces.cuda.low_bit.scalar import ScalarCode

MOST_ROWS = 8
"""Rows of a block at most without tensor cores: more have too many sums."""
MATRIX_ROWS = 64
"""Rows of a block at most with tensor cores."""


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
        paired = self.why_no_pairs() is None
        plain, fragments = found.row_parts(MOST_ROWS), _fragment_rows(found) if paired else ()
        self.decisions = (
            Decision("tile_rows", tuple(sorted({*plain, *fragments}))),
            Decision("warp_tiles", (1, 2, 4) if paired else (1, 2)),
            Decision("warp_columns", (1, 2, 4)),
            Decision("warp_depth", (1, 2, 4, 8, 16)),
            Decision("in_flight", (1, 2, 4)),
            Decision("block_depth", (1, 4, 16, 32, 64, 128)),
            Decision("splits", (1, 2, 4, 8, 16)),
            Decision("scales", ("late", "early") if found.scale is not None else ("late",)),
            *([Decision("multiply", ("fma", "mma"))] if paired else ()),
        )
        rows = {"fma": plain, "mma": fragments}
        self.rules = coded_rules(found, self.cuda, self.decisions, rows)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Refuse what is no product of codes and activations, and sums that are read elsewhere."""
        if reason := why_no_codes(workload, C_TYPES):
            return reason
        assert isinstance(workload, Computation)
        product = coded_product_of(workload.program)
        assert isinstance(product, CodedProduct)
        return _why_not_at_once(product)

    def why_no_pairs(self) -> str | None:
        """Say why tensor cores do not multiply; None if they may."""
        product = self.product
        activation, group = product.activation, product.group
        axes = tuple(map(AxisValue, (*product.rows, product.depth)))
        operand = None
        if isinstance(activation, Read) and activation.indices == axes:
            operand = product.program.operand.get(activation.name)
        if operand is None or operand.dtype not in FRACTIONS or not _is_dense(operand):
            return f"{activation} is no row of {' or '.join(FRACTIONS)}"
        if group < product.terms and group % FRAGMENT:
            return f"groups of {group} along the depth; allowed: multiples of {FRAGMENT}"
        if product.differs_by_row:
            return "rows differ in their matrices, zero points or scales"
        pairs = PairDecoding(self.decoding, operand.dtype)
        return pairs.why_not(product.zero is not None)

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
        """Return the kernel; its entry is named after the workload and the schedule."""
        called = (LIBRARY[name] for name in sorted(LIBRARY.keys() & self.workload.functions))
        return self._code(schedule).kernel(PRELUDE + "".join(called))

    def layouts(self, schedule: Schedule) -> Iterable[str]:
        """See ``spaces.cuda.low_bit.layouts``."""
        from tilewright.spaces.cuda.low_bit.layouts import layouts

        return layouts(self._code(schedule))

    def _code(self, schedule: Schedule) -> ScalarCode | MatrixCode:
        from tilewright.spaces.cuda.low_bit.matrix import MatrixCode
        from tilewright.spaces.cuda.low_bit.scalar import ScalarCode

        sizes = CodedSizes(self.product, schedule.values)
        kind = MatrixCode if sizes.on_tensor_cores else ScalarCode
        return kind(sizes, self.decoding, self.arguments, self.entry(schedule))


def _fragment_rows(product: CodedProduct) -> tuple[int, ...]:
    """List the rows a block may have on tensor cores, which multiply eight at once."""
    count = product.row_count
    parts = {round_up(ceil_div(count, tiles), COLUMNS) for tiles in range(1, count + 1)}
    return tuple(sorted(n for n in parts if n <= MATRIX_ROWS))


def _is_dense(operand: Operand) -> bool:
    """Tell whether elements lie one after the other, in the order of the dimensions."""
    plain = operand.order == tuple(range(len(operand.shape)))
    return plain and not operand.packed and operand.leading is None and operand.steps is None


def _why_not_at_once(product: CodedProduct) -> str | None:
    """Say why an element of the output does not follow from the sum at its own place."""
    axes = (*product.rows, product.column)
    own = Read(product.sums.name, tuple(map(AxisValue, axes)))
    stage = Plan(product.last).nests[-1].stage
    found = sorted(str(read) for read in stage.body.reads if read.name == own.name)
    if set(found) != {str(own)} or set(stage.axes) != set(axes):
        return f"{stage.name} reads the sum as {' and '.join(found)}; allowed: {own}"
    return None
