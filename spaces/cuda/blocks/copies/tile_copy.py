"""Copies of tiles of an operand that is a matrix in memory."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Strided, strided
from tilewright.spaces.algebra.mapping import spatial
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.copies.block_copy import BlockCopy
from tilewright.spaces.cuda.blocks.gathered import MOST
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.workloads.array import Array

MOST_EXTENT = 4096
"""The most rows or columns of a tile."""


@dataclass(frozen=True)
class TileCopy(BlockCopy):
    """Copies of an operand with the layout ``source``, whose fast axis has stride 1.

    Tiles follow each other ``distance`` elements apart; ``{name}_from`` points to a thread's first
    vector of the next one.
    """

    source: Strided
    distance: int

    @property
    def step(self) -> int:
        """The distance from a tile to the next, in elements."""
        return self.distance

    @property
    def extents(self) -> tuple[int, int]:
        """Extents of the layout."""
        slow, fast = self.source.shape
        return slow, fast

    def start(self, slow: str, fast: str) -> list[str]:
        """Print the declaration of the pointer to the first tile, whose corner is at (slow,
        fast)."""

        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices[0], indices[1] * self.vector
            place = self.source.index([index(slow) + i, index(fast) + j]).text
            return [f"const {C_TYPES[self.dtype]} *{self.name}_from = {self.name} + {place};"]

        return unrolled(
            spatial(*self._thread_grid), THREAD, body, f"{self.name}_", None, self.integer
        )

    def advance(self, step: str | None = None) -> list[str]:
        """Print how the pointer goes on to the next tile; or by ``step`` elements, in C."""
        return [f"{self.name}_from += {step or self.step};"]

    def _address(self, indices: tuple[Index, ...]) -> str:
        """Return C text of a vector's address, relative to the thread's first vector."""
        slow, fast = self._thread_grid
        turns = [indices[0] // slow * slow, indices[1] // fast * fast * self.vector]
        offset = self.source.index(turns)
        return f"{self.name}_from" if offset.value == 0 else f"{self.name}_from + {offset.text}"


def runs_deep(product: Tiled, operand: Array) -> bool:
    """Return true if tiles of an input run along the depth."""
    return product.left_runs_deep if operand is product.left else product.right_runs_deep


def source_of(product: Tiled, operand: Array) -> Strided | None:
    """Return the layout of an input with its axis of stride 1 last; None if it is no matrix."""
    if isinstance(product, ImplicitProduct):
        return product.gathered[operand is product.right].strided
    left = operand is product.left
    layout = product.layout(product.left if left else product.right)
    if runs_deep(product, operand) == left:
        return layout
    return strided(layout.shape[::-1], layout.strides[::-1])


def position_type(product: Tiled) -> str:
    """Return the C type that holds any offset into one product's part of an operand.

    Tiles that reach beyond the operand are included.
    """
    return "int" if product.reach(MOST_EXTENT) < MOST else "i64"
