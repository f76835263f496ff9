"""Operands as the inner loop reads them: in steps of one term of the depth each, or of two.

A dot instruction multiplies pairs of bfloat16 terms and adds both products to a float32 lane. Two
terms are one 32-bit word then, and a product of K terms has K / 2 steps. An operand that is
contiguous along the depth holds such words already; packing makes them of any other operand. If K
is odd, packing pairs the last term of both operands with zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Panels, Strided, panels, strided
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.packing import PANEL
from tilewright.spaces.workloads.product import Product

PAIR = "bfloat16x2"
ODD = "bfloat16_terms"
"""The type of pairs if the number of terms, or the distance between rows, is odd. Rows are not
aligned to 32 bits then, so that pointers count bfloat16 elements, and remainders count terms."""


def element_bytes(name: str) -> int:
    """Return the bytes of an element of the type ``name``, or of a pair."""
    return 4 if name == PAIR else dtype(name).bytes


def multiply_add(c: str, a: str, b: str, pairs: bool) -> str:
    """Return the C statement that adds the products of a and b, or of their pairs, to c."""
    return f"{c} = tw_dot_pairs({c}, {a}, {b});" if pairs else f"{c} = tw_fma({a}, {b}, {c});"


@dataclass(frozen=True)
class Stream:
    """One operand as a stream of steps: (row, step) or (step, column).

    ``layout`` counts elements of ``dtype``, which is the operand's type, :data:`PAIR` or
    :data:`ODD`. The two terms of a step are ``apart`` elements apart, 0 if one load gets both.
    ``odd`` tells that the last step has one term only, so that C counts ``terms`` instead of steps.
    """

    layout: Strided | Panels
    dtype: str
    deep: bool
    """True if it is contiguous along the depth."""
    apart: int
    odd: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the layout; packed panels have none."""
        assert isinstance(self.layout, Strided)
        return self.layout.strides

    @property
    def c_type(self) -> str:
        """The type of an element in C."""
        return C_TYPES[self.dtype]

    @property
    def extent(self) -> str:
        """The C variable of a block's depth: in steps, or in terms if they are odd."""
        return "terms" if self.odd else "depth"

    def left(self, k: Index) -> str:
        """Return the C text of the depth that remains from step ``k`` on."""
        return f"{self.extent} - {k * 2 if self.odd else k}"

    def load(self, place: str, count: str, k: Index) -> str:
        """Return the C text of a vector of ``count`` steps from ``place`` on, or as many as there
        are lanes.

        If the operand is not contiguous along the depth, all lanes belong to step ``k``.
        """
        if not self.apart:
            return f"tw_load_most_{self.dtype}({place}, {count})"
        pairs = f"tw_load_pairs({place}, {self.apart}, {count})"
        if not self.odd:
            return pairs
        return f"{self.left(k)} > 1 ? {pairs} : tw_load_lone({place}, {count})"


def stream(product: Product, operand: Operand, terms: int) -> Stream:
    """Return ``operand``, the left or the right one, as a stream of steps of ``terms`` terms, 1 or
    2; a step of a packed one is a word."""
    if operand.packed:
        words = panels(ceil_div(product.terms, terms), product.columns, PANEL)
        return Stream(words, PAIR if terms > 1 else operand.dtype, False, apart=0)
    plain = product.layout(operand)
    rank = 1 if operand is product.left else 0
    deep = product.left_runs_deep if operand is product.left else product.right_runs_deep
    if terms == 1:
        return Stream(plain, operand.dtype, deep, apart=0)
    shape, strides = list(plain.shape), list(plain.strides)
    odd = shape[rank] % terms > 0
    shape[rank] = ceil_div(shape[rank], terms)
    if deep and (odd or strides[1 - rank] % terms):
        strides[rank] *= terms
        return Stream(strided(shape, strides), ODD, deep, apart=0, odd=True)
    if deep:
        strides[1 - rank] //= terms
        return Stream(strided(shape, strides), PAIR, deep, apart=0)
    apart = strides[rank]
    strides[rank] *= terms
    return Stream(strided(shape, strides), operand.dtype, deep, apart, odd)
