"""Right operands of matrix instructions on bytes whose depth is slow in shared memory.

An instruction takes four terms of a column in a register, but ``ldmatrix`` transposes pairs of
bytes, so that a lane gets two terms of two columns. From two such registers, eight terms apart,
bytes are picked by column: lane ``4 g + t`` has of columns ``2 g`` and ``2 g + 1`` the terms ``2 t,
2 t + 1, 8 + 2 t, 9 + 2 t`` of sixteen, in this order. A sum may take its terms in any order: a left
operand in the same one, which is how accumulators have them, fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, FRAGMENT_BYTES

PICKS = ("0x6420", "0x7531")
"""Selectors of the bytes of the even and of the odd columns, from two registers."""


@dataclass(frozen=True)
class ByteFragments:
    """The ``count`` fragments of one step, which all ``warps`` of a team load.

    Each has sixteen columns. ``name`` is the C array of ``count`` x 4 registers: two for the even
    columns, two for the odd ones. ``shared`` is the tile's layout, (depth, width); ``thread`` the
    number of a thread.
    """

    name: str
    warps: int
    count: int
    shared: Layout
    thread: str = THREAD

    def load(self, stage: str, step: Index) -> list[str]:
        """Print how all fragments of step ``step`` of the tile at the address ``stage`` are
        loaded."""

        def body(indices: tuple[Index, ...]) -> list[str]:
            fragment, term = indices
            place = self.shared.index([step * FRAGMENT_BYTES + term, fragment * FRAGMENT])
            picked = (
                f"{self.name}[{fragment.text}][{2 * odd + half}] = "
                f"tw::byte_permute(raw[{2 * half}], raw[{2 * half + 1}], {pick});"
                for odd, pick in enumerate(PICKS)
                for half in range(2)
            )
            return [
                "u32 raw[4];",
                f"tw::ldmatrix_x4_trans(raw, {stage} + {place});",
                *picked,
            ]

        lanes = repeat(1, self.count, 1) * spatial(1, 1, FRAGMENT_BYTES)
        mapping = (spatial(self.warps, 1, 1) * lanes).project((1, 2))
        return unrolled(mapping, self.thread, body, f"{self.name}_")
