"""The sums of a warpgroup as wgmma leaves them in registers, and how they are finished.

A warpgroup holds blocks of 64 x ``columns`` sums (PTX ISA, "Register Fragments for wgmma"):
``sums[block][register]`` in each thread. If operands are swapped, a block's columns are rows of the
output.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.cuda.blocks.finish import Finish
from tilewright.spaces.cuda.hopper.tile import BLOCK
from tilewright.spaces.cuda.hopper_pairs.product import twin_of


@dataclass(frozen=True)
class GroupSums:
    """Blocks of 64 x ``columns`` sums of a warpgroup.

    For a pair of products, as many sums of the other product follow in each block. They are
    finished together with an operand that was ``fetched``, if there is one, for output ``number``.
    Lines read ``row0`` and ``column0``, the position of the first sum in the output.
    """

    finish: Finish
    swapped: bool
    columns: int
    fetched: bool
    number: int = 0

    def pair(self, m: Index, n: Index) -> list[str]:
        """Return the sums at (m, n) and (m, n + 1) of the warpgroup's blocks, in C; n is even."""
        place = n // 8 * 4 + m // 8 % 2 * 2
        return [f"sums[{(m // BLOCK).text}][{(place + e).text}]" for e in range(2)]

    def others(self, m: Index, n: Index) -> list[str]:
        """Return the other product's sums at the same places, if there is a pair of products.

        They lie in the second half of a block's columns.
        """
        return self.pair(m, n + self.columns) if twin_of(self.finish.product) else []

    def finished(self, m: Index, n: Index, place: int) -> list[str]:
        """Print ``value[place]`` and the next: the finished elements at (m, n) and (m, n + 1)."""
        sums = self.pair(m, n)
        results = [f"value[{place + e}]" for e in range(2)]
        beside = [f"beside[{place + e}]" for e in range(2)] if self.fetched else []
        beside = beside or self.others(m, n)
        row, column = index("row0"), index("column0")
        if not self.swapped:
            at = row + m, column + n
            return self.finish.finish(*at, sums, results, beside, self.number)
        return [
            line
            for e in range(2)
            for line in self.finish.finish(
                row + n + e,
                column + m,
                sums[e : e + 1],
                results[e : e + 1],
                beside[e : e + 1],
                self.number,
            )
        ]


def pairs_of_warp(columns: int) -> TaskMapping:
    """Return the mapping from a lane to its pairs of neighbours in 16 x ``columns`` sums.

    Pairs come in the order of registers.
    """
    return repeat(1, columns // 8) * repeat(2, 1) * spatial(8, 4)
