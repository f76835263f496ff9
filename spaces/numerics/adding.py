"""Bound the error of a right kernel that adds up many terms, in any order."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.dtypes import dtype

IN_ONE, IN_ONE_OF_PRODUCTS, IN_ONE_OF_TENSOR_CORES = 1 << 10, 1 << 15, 1 << 18
"""The most terms that a right kernel adds to one accumulator; longer sums are split into blocks.

Products keep a matrix of accumulators in registers and add more terms before they empty it. Tensor
cores add the most: rounding their factors costs more than adding."""
IN_ONE_OF_FLOAT8 = 128
"""The most products of float8 that a right kernel adds to one of wgmma's sums. These keep 14 bits:
each addend is cut off 13 bits below the leading bit of the largest. On an H200, equal products lose
nothing with 128 in a sum, .35 % with 256 and 1.4 % with 512; 8.7 % are lost with 4,096."""
TRUNCATED = frozenset({"float16", "bfloat16", "tfloat32"})
"""Dtypes whose products tensor cores may add up."""


def adds_float8(factors: Sequence[str]) -> bool:
    """Tell whether all factors of the terms are float8."""
    return bool(factors) and all(name.startswith("float8") for name in factors)


def in_one_accumulator(terms: int, factors: Sequence[str]) -> int:
    """Compute the number of terms that right kernels may add to one accumulator."""
    if adds_float8(factors):
        return min(terms, IN_ONE_OF_FLOAT8)
    if not TRUNCATED.isdisjoint(factors):
        return min(terms, IN_ONE_OF_TENSOR_CORES)
    return min(terms, IN_ONE_OF_PRODUCTS if factors else IN_ONE)


def drift_of_sum(terms: int, kind: str, factors: Sequence[str]) -> float:
    """Bound the additional error of a sum whose terms may be equal, relative to its value.

    Adding equal terms rounds the same way each time, as long as the sum keeps its exponent. One
    addition rounds by a quarter of a unit of the largest sum, on average over all terms. For
    example, the sum of n terms of 0.1 is off by n / 12 units. Blocks that are added exactly are
    off by no more than each block, relative to its value.
    """
    return _unit(kind, factors) * in_one_accumulator(terms, factors) / 8.0


def error_of_sum(
    terms: int, kind: str, factors: Sequence[str], grown: float, few: float
) -> tuple[float, float]:
    """Bound the error of a sum in the dtype ``kind``: a relative and an absolute part, to be added.

    ``grown`` bounds the partial sums of any terms, ``few`` those of two or three terms; neither
    exceeds the sum of all magnitudes. ``factors`` are the dtypes of the arrays whose products are
    the terms.

    Adding a term to n others in one accumulator rounds by at most half a unit of their sum. Such
    errors behave as random ones. If all partial sums are as large as the last, their standard
    deviation is sqrt(n) / 6 units of it (Higham and Mary, A new approach to probabilistic rounding
    error analysis, SISC 41, 2019). The bound allows sqrt(n) units for long sums in any order, and
    8 units for short ones. One accumulator adds at most :func:`in_one_accumulator` terms, and
    adding blocks costs less than adding within one. So a kernel that adds all terms of a long sum
    to one accumulator exceeds the bound.

    Tensor cores truncate towards zero at least once per 16 products (Fasi, Higham, Mikaitis and
    Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ CS 7, 2021). Each truncation costs up
    to a unit of the sum; 28,672 products on an H200 erred by up to 2.1 units a product. Sums of
    float8 products keep 14 truncated bits in wgmma (DeepSeek-AI, DeepSeek-V3 Technical Report,
    2024, section 3.3.2), so that at most :data:`IN_ONE_OF_FLOAT8` are added to one.
    """
    unit = _unit(kind, factors)
    at_once = in_one_accumulator(terms, factors)
    truncations = 0.0 if TRUNCATED.isdisjoint(factors) else at_once / 16.0
    return (2.0 + truncations) * unit, unit * (grown * at_once**0.5 + 8.0 * few)


def _unit(kind: str, factors: Sequence[str]) -> float:
    """Return the unit in which an accumulator errs, relative to its value."""
    return 2.0**-13 if adds_float8(factors) else dtype(kind).epsilon
