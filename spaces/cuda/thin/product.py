"""A product seen along its thin side: one operand is small, the other one is read once.

Templates of tiles pad few rows to whole tiles. Here the few rows (or the few columns: the roles are
the same) stay as they are, and all that counts is how fast the large operand comes from memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.cuda.abi import OPEN_EXTENT
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.product import Product

MOST_FEW = 16
"""The most rows (or columns) of the thin side."""
FRAGMENT = 8
"""Rows of the small operand that one ``mma.sync`` takes, and lanes along columns."""
MMA_TYPES = {"float16": "f16", "bfloat16": "bf16"}
"""Elements that ``mma.sync`` multiplies here, as its name spells them."""


@dataclass(frozen=True)
class ThinProduct:
    """``product`` with a ``small`` operand of ``few`` rows (or columns) and a ``large`` one.

    The large one has ``many`` columns (or rows).
    """

    product: Product

    @cached_property
    def rows_are_few(self) -> bool:
        """True if the left operand is the small one."""
        return self.product.rows <= self.product.columns

    @cached_property
    def few(self) -> int:
        """Rows of the small operand."""
        return min(self.product.rows, self.product.columns)

    @cached_property
    def many(self) -> int:
        """Columns of the large operand."""
        return max(self.product.rows, self.product.columns)

    @property
    def row_end(self) -> int | str:
        """The number of rows of the small operand, in C."""
        return OPEN_EXTENT if self.product.is_open and self.rows_are_few else self.few

    @property
    def column_end(self) -> int | str:
        """The number of columns of the large operand, in C."""
        return OPEN_EXTENT if self.product.is_open and not self.rows_are_few else self.many

    def nearest_row(self, row: Index, most: int) -> Index:
        """Return a row of the small operand, at most ``most``; where there is none, the last one,
        whose sums are not used there."""
        if self.row_end == self.few:
            last = f"{self.few - 1}"
            if most < self.few:
                return row
        else:
            last = f"{self.row_end} - 1"
        return index(f"({row.text} < {last} ? {row.text} : {last})", self.few)

    @cached_property
    def terms(self) -> int:
        """Extent of the axis that is summed over."""
        return self.product.terms

    @cached_property
    def small(self) -> Operand:
        """The operand with few rows."""
        return self.product.left if self.rows_are_few else self.product.right

    @cached_property
    def large(self) -> Operand:
        """The operand with many columns."""
        return self.product.right if self.rows_are_few else self.product.left

    @cached_property
    def small_name(self) -> str:
        """The C name of the small operand in an entry."""
        return "left" if self.rows_are_few else "right"

    @cached_property
    def large_name(self) -> str:
        """The C name of the large operand in an entry."""
        return "right" if self.rows_are_few else "left"

    @cached_property
    def row_stride(self) -> int:
        """Elements between rows of the small operand."""
        return self.small.stride(self._axes[0])

    @cached_property
    def column_stride(self) -> int:
        """Elements between columns of the large operand."""
        return self.large.stride(self._axes[1])

    @cached_property
    def small_depth_stride(self) -> int:
        """Elements between terms of the small operand."""
        return self.small.stride(self.product.depth)

    @cached_property
    def large_depth_stride(self) -> int:
        """Elements between terms of the large operand."""
        return self.large.stride(self.product.depth)

    @cached_property
    def large_runs_deep(self) -> bool:
        """True if the large operand is contiguous along the depth, false if along columns."""
        return self._runs_deep(self.large)

    @cached_property
    def large_vector(self) -> int:
        """Elements of the large operand's widest accesses: up to 16 bytes.

        Such accesses are whole and aligned wherever its rows start.
        """
        return gcd(16 // self.large.element.bytes, self.product.run(self.large))

    @cached_property
    def small_vector(self) -> int:
        """Elements of the small operand's widest accesses along the depth; 1 if it runs along
        rows."""
        if not self._runs_deep(self.small):
            return 1
        return gcd(16 // self.small.element.bytes, self.product.run(self.small))

    @cached_property
    def written_stride(self) -> int:
        """Elements between the outputs of neighbouring columns, which neighbouring lanes write."""
        return self.product.output.stride(self._axes[1])

    def place(self, row: Index, column: Index) -> tuple[Index, Index]:
        """Return row and column of the output for a row and a column of the thin product."""
        return (row, column) if self.rows_are_few else (column, row)

    def _runs_deep(self, operand: Operand) -> bool:
        """Return true if an operand's elements lie side by side along the depth.

        This agrees with ``product.run``: both axes have stride 1 where the depth is one term.
        """
        product = self.product
        return product.left_runs_deep if operand is product.left else product.right_runs_deep

    @cached_property
    def _axes(self) -> tuple[str, str]:
        axes = self.product.row, self.product.column
        return axes if self.rows_are_few else axes[::-1]
