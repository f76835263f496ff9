"""The CUDA template of products with packed codes: what can be decided.

See ``spaces.cuda.low_bit.code`` for the kernel and ``spaces.cuda.low_bit.rules`` for what is ruled
out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tilewright.spaces.cuda.loops.code import LIBRARY, PRELUDE
from tilewright.spaces.cuda.low_bit.decoding import Decoding
from tilewright.spaces.cuda.low_bit.rules import coded_rules
from tilewright.spaces.cuda.low_bit.served import (
    coded_product,
    decoding_of,
    why_no_product,
)
from tilewright.spaces.cuda.low_bit.sizes import CodedSizes
from tilewright.spaces.cuda.low_bit.traffic import coded_quantities
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.spaces.cuda.low_bit.scalar import ScalarCode

MOST_ROWS = 8
"""Rows of a block at most: more have too many sums."""


class CudaLowBit(CudaTemplate):
    """Products of activations and packed codes, with zero points and scales of groups."""

    name: ClassVar[str] = "low_bit"
    version: ClassVar[int] = 2
    refuses_products: ClassVar[str] = "no operand has packed codes"
    reads_codes: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.product = found = coded_product(workload)
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
        return why_no_product(workload)

    @cached_property
    def decoding(self) -> Decoding:
        """The way from codes to values."""
        return decoding_of(self.product)

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

    def _code(self, schedule: Schedule) -> ScalarCode:
        from tilewright.spaces.cuda.low_bit.scalar import ScalarCode

        sizes = CodedSizes(self.product, schedule.values)
        return ScalarCode(sizes, self.decoding, self.arguments, self.entry(schedule))
