"""Operands as the inner loop reads them: in steps of depth of one term each, or of two.

A dot instruction multiplies pairs of bfloat16 terms and adds both products to a float32 lane. Two
terms then make one 32-bit word, and a product of K terms has K / 2 steps. An operand contiguous
along the depth holds such words already; of another one, packing must bring the two together.
"""

from __future__ import annotations

from dataclasses import dataclass

from spaces.cpu.simd import C_TYPES
from spaces.dtypes import dtype
from spaces.layout import Strided, strided
from spaces.product import Product
from spaces.workload import Operand

PAIR = "bfloat16x2"


def element_bytes(name: str) -> int:
    """Bytes of an element of the dtype ``name``, or of a pair."""
    return 4 if name == PAIR else dtype(name).bytes


def multiply_add(c: str, a: str, b: str, pairs: bool) -> str:
    """C statement: adds the products of a and b's lanes, or of their pairs, to c's."""
    return f"{c} = tw_dot_pairs({c}, {a}, {b});" if pairs else f"{c} += {a} * {b};"


@dataclass(frozen=True)
class Stream:
    """One operand, (row, step) or (step, column).

    ``layout`` is in elements of ``dtype``, which is that of the operand or :data:`PAIR`; the two
    terms of a step are ``apart`` elements from each other, 0 if they are one element.
    """

    layout: Strided
    dtype: str
    deep: bool
    """Whether it is contiguous along the depth."""
    apart: int

    @property
    def c_type(self) -> str:
        """Spelling of an element in C."""
        return C_TYPES[self.dtype]

    def load(self, place: str, count: str) -> str:
        """C text: a vector of the steps at ``place``, or of the first ``count`` if fewer."""
        if self.apart:
            return f"tw_load_pairs({place}, {self.apart}, {count})"
        return f"tw_load_most_{self.dtype}({place}, {count})"


def stream(product: Product, operand: Operand, terms: int) -> Stream:
    """``operand``, the left or the right one, in steps of ``terms`` (1 or 2) terms."""
    plain = product.layout(operand)
    rank = 1 if operand is product.left else 0
    deep = product.left_runs_deep if operand is product.left else product.right_runs_deep
    if terms == 1:
        return Stream(plain, operand.dtype, deep, apart=0)
    shape, strides = list(plain.shape), list(plain.strides)
    shape[rank] //= terms
    if deep:
        strides[1 - rank] //= terms
        return Stream(strided(shape, strides), PAIR, deep, apart=0)
    apart = strides[rank]
    strides[rank] *= terms
    return Stream(strided(shape, strides), operand.dtype, deep, apart)
