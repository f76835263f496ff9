"""How far off a right kernel may be that adds up many terms, in any order."""

from __future__ import annotations

from collections.abc import Sequence

from spaces.dtypes import dtype

TRUNCATED = frozenset({"float16", "bfloat16", "tfloat32"})
"""Dtypes whose products tensor cores may add up."""


def adds_float8(factors: Sequence[str]) -> bool:
    """Whether all arrays that terms are products of are float8."""
    return bool(factors) and all(name.startswith("float8") for name in factors)


def error_of_sum(
    terms: int, kind: str, factors: Sequence[str], grown: float, few: float
) -> tuple[float, float]:
    """The error allowed of a sum in the dtype ``kind``, relative to its value and absolute, the two
    added. The sum of any of its terms grows to ``grown``, that of two or three to ``few``: neither
    to more than the sum of all magnitudes. ``factors`` are the dtypes of the arrays that terms are
    products of.

    Adding one term to the n before rounds their sum by half a unit at most. As random errors these
    add up, where all sums are as large as the last, to a standard deviation of sqrt(n) / 6 units of
    it (Higham and Mary, A new approach to probabilistic rounding error analysis, SISC 41, 2019): so
    sqrt(n) are beyond what is ever seen of long sums, in any order, and 8 units of short ones.
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
    truncations = 0.0 if TRUNCATED.isdisjoint(factors) else terms / 16.0
    return (2.0 + truncations) * unit, unit * (grown * terms**0.5 + 8.0 * few)
