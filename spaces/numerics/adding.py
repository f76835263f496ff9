"""Bound the error of a right kernel that adds up many terms, in any order."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.dtypes import dtype

IN_ONE, IN_ONE_OF_PRODUCTS, IN_ONE_OF_TENSOR_CORES = 1 << 10, 1 << 15, 1 << 18
"""Terms that a right kernel adds to one accumulator at most: longer sums are in blocks. Products
have a matrix of accumulators, which fills the registers, and take more before it is emptied; most
of all where tensor cores keep it, whose error is less than that of what they multiply."""
TRUNCATED = frozenset({"float16", "bfloat16", "tfloat32"})
"""Dtypes whose products tensor cores may add up."""


def adds_float8(factors: Sequence[str]) -> bool:
    """Tell whether all factors of the terms are float8."""
    return bool(factors) and all(name.startswith("float8") for name in factors)


def in_one_accumulator(terms: int, factors: Sequence[str]) -> int:
    """Compute the number of terms that right kernels may add to one accumulator."""
    if not TRUNCATED.isdisjoint(factors):
        return min(terms, IN_ONE_OF_TENSOR_CORES)
    return min(terms, IN_ONE_OF_PRODUCTS if factors else IN_ONE)


def drift_of_sum(terms: int, kind: str, factors: Sequence[str]) -> float:
    """The further error allowed, relative to its value, of a sum whose terms may be alike.

    Equal terms are all rounded the same way as long as their sum has one exponent: by a quarter of
    a unit of the largest sum each, on average over what terms may be. Of .1, n of them are off by
    n / 12 units. Blocks that are added up exactly are off by no more than each of them.
    """
    return dtype(kind).epsilon * in_one_accumulator(terms, factors) / 8.0


def error_of_sum(
    terms: int, kind: str, factors: Sequence[str], grown: float, few: float
) -> tuple[float, float]:
    """The error allowed of a sum in the dtype ``kind``, relative to its value and absolute, the two
    added. The sum of any of its terms grows to ``grown``, that of two or three to ``few``: neither
    to more than the sum of all magnitudes. ``factors`` are the dtypes of the arrays that terms are
    products of.

    Adding one term to the n before in one accumulator rounds their sum by half a unit at most. As
    random errors these add up, where all sums are as large as the last, to a standard deviation of
    sqrt(n) / 6 units of it (Higham and Mary, A new approach to probabilistic rounding error
    analysis, SISC 41, 2019): so sqrt(n) are beyond what is ever seen of long sums, in any order,
    and 8 units of short ones. An accumulator has no more terms than :func:`in_one_accumulator`
    says: the blocks of longer sums are added up with less error than one of them has. So the error
    of a kernel that adds up all of a long sum in one is more.
    Tensor cores truncate, always towards zero, once for 16 products or more often (Fasi, Higham,
    Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ CS 7, 2021): up to a unit
    of the sum each time (28,672 products on an H200 went up to 2.1 units a product astray). Sums of
    float8 products are kept with 14 bits, truncated, on some tensor cores (DeepSeek-AI, DeepSeek-V3
    Technical Report, 2024, section 3.3.2): half a unit of 2**-13 for each term. From 16,384 terms
    on that is as much as one product, so one that is left out is not seen there.
    """
    unit = dtype(kind).epsilon
    if adds_float8(factors):
        unit = 2.0**-13
    at_once = in_one_accumulator(terms, factors)
    truncations = 0.0 if TRUNCATED.isdisjoint(factors) else at_once / 16.0
    return (2.0 + truncations) * unit, unit * (grown * at_once**0.5 + 8.0 * few)
