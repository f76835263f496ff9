"""Operands as the inner loop reads them: in steps of depth of one term each, or of two.

A dot instruction multiplies pairs of bfloat16 terms and adds both products to a float32 lane. Two
terms then make one 32-bit word, and a product of K terms has K / 2 steps. An operand contiguous
along the depth holds such words already; of another one, packing must bring the two together. If K
is odd, packing pairs the last term of both operands with zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Panels, Strided, panels, strided
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.workloads.contraction import Operand
from tilewright.spaces.workloads.packing import PANEL
from tilewright.spaces.workloads.product import Product

PAIR = "bfloat16x2"
ODD = "bfloat16_terms"
"""Pairs where the number of terms, or the distance between rows, is odd: rows are not aligned to 32
bits, so pointers count bfloat16 elements, and remainders count terms."""


def element_bytes(name: str) -> int:
    """Bytes of an element of the dtype ``name``, or of a pair."""
    return 4 if name == PAIR else dtype(name).bytes


def multiply_add(c: str, a: str, b: str, pairs: bool) -> str:
    """C statement: adds the products of a and b's lanes, or of their pairs, to c's."""
    return f"{c} = tw_dot_pairs({c}, {a}, {b});" if pairs else f"{c} = tw_fma({a}, {b}, {c});"


@dataclass(frozen=True)
class Stream:
    """One operand, (row, step) or (step, column).

    ``layout`` is in elements of ``dtype``, which is that of the operand, :data:`PAIR` or
    :data:`ODD`; the two terms of a step are ``apart`` elements from each other, 0 if they are one
    load. ``odd`` says that the last step has one term only, so that ``terms`` are what is counted.
    """

    layout: Strided | Panels
    dtype: str
    deep: bool
    """Whether it is contiguous along the depth."""
    apart: int
    odd: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the layout; packed panels have none."""
        assert isinstance(self.layout, Strided)
        return self.layout.strides

    @property
    def c_type(self) -> str:
        """Spelling of an element in C."""
        return C_TYPES[self.dtype]

    @property
    def extent(self) -> str:
        """The C variable that says how deep a block is: in steps, or in terms if they are odd."""
        return "terms" if self.odd else "depth"

    def left(self, k: Index) -> str:
        """C text: what is left of the depth from step ``k`` on."""
        return f"{self.extent} - {k * 2 if self.odd else k}"

    def load(self, place: str, count: str, k: Index) -> str:
        """C text: a vector of steps from ``place`` on, or the first ``count`` if fewer; all of them
        at step ``k`` if the operand is not contiguous along the depth."""
        if not self.apart:
            return f"tw_load_most_{self.dtype}({place}, {count})"
        pairs = f"tw_load_pairs({place}, {self.apart}, {count})"
        if not self.odd:
            return pairs
        return f"{self.left(k)} > 1 ? {pairs} : tw_load_lone({place}, {count})"


def stream(product: Product, operand: Operand, terms: int) -> Stream:
    """``operand``, the left or the right one, in steps of ``terms`` (1 or 2) terms; those of a
    packed one are its words."""
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
