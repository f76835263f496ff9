"""Operands of matrix instructions: their layout in shared memory, and loads by ``ldmatrix``.

``ldmatrix`` takes rows of 16 bytes, eight to a matrix, four matrices at a time; lane ``8 i + r``
addresses row ``r`` of matrix ``i``. A fragment of 16 rows (or columns) by 32 bytes of depth is four
matrices; if elements have 2 bytes, its depth may also be slow, and it is then transposed on the
way. Instructions and fragments: PTX ISA, "Warp-level matrix instructions".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Layout, row_major, swizzled
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled

FRAGMENT = 16
"""Rows or columns of one fragment."""

FRAGMENT_BYTES = 32
"""Bytes of depth of one fragment."""

_ROW = 16
_LINE = 128


def swizzled_tile(slow: int, fast: int, element_bytes: int) -> Layout:
    """Return the layout of a tile in swizzled panels of at most 128 bytes along ``fast``.

    Pieces of 16 bytes are permuted from row to row, so that ``ldmatrix`` and copies have no bank
    conflicts.
    """
    panel = min(_LINE // element_bytes, fast & -fast)
    base = (_ROW // element_bytes).bit_length() - 1
    bits = (panel * element_bytes // _ROW).bit_length() - 1
    rows = row_major(slow, panel)
    inner: Layout = swizzled(rows, bits, base, 3) if bits > 0 else rows
    return row_major(1, fast // panel) * inner


@dataclass(frozen=True)
class Fragments:
    """The fragments of one operand in one step: ``count`` along the warp's tile.

    ``name`` is the C array of ``count`` x 4 registers; ``shared`` the tile's layout, (width, depth)
    if ``deep``, else (depth, width). ``rank`` is 0 for the left operand, whose fragments run along
    rows, and 1 for the right one; ``warps`` are those along both, ``thread`` one of their threads.
    """

    name: str
    rank: int
    warps: tuple[int, int]
    count: int
    shared: Layout
    deep: bool
    element_bytes: int
    thread: str = THREAD

    @property
    def terms(self) -> int:
        """Terms of one fragment."""
        return FRAGMENT_BYTES // self.element_bytes

    @property
    def mapping(self) -> TaskMapping:
        """The mapping from threads to rows of matrices, (along the tile, along the depth).

        The depth is that of a fragment. Places are counted in elements along the slow axis and in
        pieces of 16 bytes along the fast one. Registers 0 and 1 of the left operand are neighbours
        along rows, those of the right one along the depth, so the order of the matrices differs.
        Rank 0, projected away, counts the warps that share these fragments.
        """
        slow, fast = (1, 2) if self.deep else (2, 1)
        if self.deep == (self.rank == 0):
            lanes = _along(fast, 2) * _along(slow, 16)
        else:
            lanes = _along(slow, 2) * _along(fast, 2) * _along(slow, 8)
        rows, columns = self.warps
        if self.rank == 0:
            warps = spatial(columns, rows, 1, order=(1, 0, 2))
        else:
            warps = spatial(rows, columns, 1)
        return (warps * repeat(1, self.count, 1) * lanes).project((1, 2))

    def load(self, stage: str, step: Index) -> list[str]:
        """Print how all fragments at terms ``step * terms`` of the tile at ``stage`` are loaded."""
        piece = _ROW // self.element_bytes
        transpose = "" if self.deep else "_trans"

        def body(indices: Sequence[Index]) -> list[str]:
            along, deep = indices
            if self.deep:
                fragment = along // FRAGMENT % self.count
                place = self.shared.index([along, step * self.terms + deep * piece])
            else:
                fragment = along // (FRAGMENT // piece) % self.count
                place = self.shared.index([step * self.terms + deep, along * piece])
            address = f"{stage} + {place * self.element_bytes}"
            return [f"tw::ldmatrix_x4{transpose}({self.name}[{fragment.text}], {address});"]

        return unrolled(self.mapping, self.thread, body, f"{self.name.partition('[')[0]}_")


def _along(rank: int, extent: int) -> TaskMapping:
    shape = [1, 1, 1]
    shape[rank] = extent
    return spatial(*shape)


def multiply_add(
    instruction: str, total: str, factors: tuple[str, str], indices: Sequence[Index]
) -> list[str]:
    """Return lines that add to ``total`` the product of fragments of two ``factors``: at
    ``indices``, of which the right one counts halves."""
    (left, right), (i, j) = factors, indices
    block, half = (j // 2).text, j % 2 * 2
    pair = f"{right}[{block}][{half.text}], {right}[{block}][{(half + 1).text}]"
    return [
        f"const u32 pair[2] = {{{pair}}};",
        f"tw::{instruction}({total}, {left}[{i.text}], pair);",
    ]
