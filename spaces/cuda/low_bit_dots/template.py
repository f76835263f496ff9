"""The CUDA template of products of int8 activations and packed codes."""

from __future__ import annotations

from typing import ClassVar

from tilewright.spaces.cuda.low_bit.pairs import PairDecoding
from tilewright.spaces.cuda.low_bit.served import bytes_of
from tilewright.spaces.cuda.low_bit_dots.code import DotCode
from tilewright.spaces.cuda.low_bit_ring.template import LowBitRing
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.schedule import Schedule


class CudaLowBitDots(LowBitRing):
    """Products of rows of int8 and packed codes, with zero points and scales of groups.

    Sums of a part of the depth are exact, and zero points are subtracted of them.
    """

    name: ClassVar[str] = "low_bit_dots"
    version: ClassVar[int] = 1
    raised: ClassVar[bool] = True

    @classmethod
    def _pairs_of(cls, product: CodedProduct) -> PairDecoding | str:
        return bytes_of(product)

    def _code(self, schedule: Schedule) -> DotCode:
        sizes = self.sizes(schedule.values)
        return DotCode(sizes, self.arguments, self.entry(schedule), self.bulk)
