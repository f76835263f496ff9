"""Random numbers by counting: Philox 4x32-10, the same bits in every language.

``random(seed, i, j)`` is a number of 24 bits from 0 up to 1: the upper bits of the first word that
Philox makes of the counter ``(i, j, 0, 0)`` and the key ``(seed, 0)`` (Salmon et al., Parallel
Random Numbers: As Easy as 1, 2, 3, SC 2011). So it depends on nothing but its arguments, and may be
computed again instead of being kept. Arguments are float32, rounded towards zero, and bounded by 0
and 2**24 - 1; NaN gives NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LARGEST = 2**24 - 1
"""The largest argument that is told apart from others."""
ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
"""Numbers that the two words of the key grow by after each round."""
_WORD = 0xFFFFFFFF


def philox(counter: Sequence[Any], key: Sequence[Any]) -> Sequence[Any]:
    """Return the four words that Philox makes of four of a counter and two of a key: whole numbers
    of 32 bits in 64, in arrays or tensors."""
    words, keys = tuple(counter), tuple(key)
    for _ in range(ROUNDS):
        (low, high), (low2, high2) = (
            _product(by, word) for by, word in zip(MULTIPLIERS, words[::2], strict=True)
        )
        words = (high2 ^ words[1] ^ keys[0], low2, high ^ words[3] ^ keys[1], low)
        keys = tuple((key + step) & _WORD for key, step in zip(keys, STEPS, strict=True))
    return words


def first_word(seed: Any, i: Any, j: Any) -> Any:
    """Return the word that a random number is made of."""
    return philox((i, j, i * 0, i * 0), (seed, seed * 0))[0]


def _product(by: int, word: Any) -> tuple[Any, Any]:
    """Return the lower and the upper word of a product, without more than 63 bits on the way."""
    low = by * (word & 0xFFFF)
    high = by * (word >> 16) + (low >> 16)
    return (high & 0xFFFF) << 16 | (low & 0xFFFF), high >> 16


def random_numbers(*arguments: np.ndarray) -> np.ndarray:
    """Return the random numbers of a seed and two counters, as float64."""
    given = [np.asarray(each).astype(np.float32) for each in arguments]
    unknown = np.isnan(given[0]) | np.isnan(given[1]) | np.isnan(given[2])
    words = (np.clip(np.nan_to_num(each), 0, LARGEST).astype(np.int64) for each in given)
    return np.where(unknown, np.nan, (first_word(*words) >> 8) * 2.0**-24)


def definition(function: str, kind: str, name: str) -> str:
    """C text, which is CUDA C++ too, of the function ``name`` of numbers of a ``kind``;
    ``function`` stands before it."""
    words = "\n".join(
        f"  const float {x} = (float){x}_given;\n"
        f"  unsigned {word} = {x} >= {LARGEST}.0f ? {LARGEST}u : {x} > 0.0f ? (unsigned){x} : 0u;"
        for x, word in (("s", "k0"), ("i", "c0"), ("j", "c1"))
    )
    first, second = (f"{each:#x}u" for each in MULTIPLIERS)
    return f"""\
{function} {kind} {name}({kind} s_given, {kind} i_given, {kind} j_given) {{
{words}
  unsigned c2 = 0, c3 = 0, k1 = 0;
  for (int round = 0; round < {ROUNDS}; round++) {{
    const unsigned long long p = (unsigned long long){first} * c0;
    const unsigned long long q = (unsigned long long){second} * c2;
    c0 = (unsigned)(q >> 32) ^ c1 ^ k0;
    c1 = (unsigned)q;
    c2 = (unsigned)(p >> 32) ^ c3 ^ k1;
    c3 = (unsigned)p;
    k0 += {STEPS[0]:#x}u;
    k1 += {STEPS[1]:#x}u;
  }}
  const {kind} number = ({kind})(c0 >> 8) * ({kind})5.9604644775390625e-8;
  return s == s && i == i && j == j ? number : s_given + i_given + j_given;
}}
"""
