"""The CPU template of products of int8 activations and packed codes.

Decisions: rows of a tile, tiles of codes along the depth of a block, ``prefetch`` and ``workers``.
Sums of a group are exact, and are multiplied by its scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import Code
from tilewright.spaces.cpu.isa import byte_dot
from tilewright.spaces.cpu.low_bit.template import LowBit
from tilewright.spaces.cpu.low_bit_dots.served import why_no_dots
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class LowBitDots(LowBit):
    """Products of int8 activations and packed codes by dot products of bytes."""

    name: ClassVar[str] = "low_bit_dots"
    version: ClassVar[int] = 1
    terms_each: ClassVar[int] = 4

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: no product of whole numbers of up to 8 bits."""
        return why_no_dots(workload)

    def _arithmetic(self) -> tuple[Decision, ...]:
        return ()

    def registers(self, values: Mapping[str, Any]) -> Any:
        """Compute the vectors in use: sums of groups and of blocks, words, and two factors."""
        rows = values["tile_rows"]
        sums = np.where(rows == 1, 4, 2 * rows)
        return sums + 2 * rows + min(self.product.codes.element.bits, 4) + 3

    def decoding_cost(self, columns: Columns) -> np.ndarray:
        """Compute the instructions that make the bytes of quads: a shift and a mask, or those of
        two pairs and what joins them."""
        aligned = self.product.codes.element.bits in (1, 2, 4, 8)
        return np.full(columns["tile_rows"].shape, 2.0 if aligned else 5.0)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.low_bit_dots.code import DotCode

        given, decoding = self.workload.operands, self.decoded("computed")
        return DotCode(self.product, decoding, given, schedule.values, entry)

    def _prelude(self) -> str:
        bits = self.product.codes.element.bits
        return super()._prelude() + byte_dot(self.cpu.isa, self.cpu.vector_bytes, bits)
