"""The values of element types of up to 8 bits: a table by bit pattern, which is what they mean.

``uintB`` and ``intB`` are whole numbers of B bits, the signed ones in two's complement.
``floatB_eEmM`` has a sign, E bits of exponent and M of fraction, the exponent's bias
``2**(E - 1) - 1``. Where B is less than 8, every code is a finite number, as those of the OCP
Microscaling Formats (MX) 1.0 are. With 8 bits the greatest exponent stands for infinities and NaN,
as in IEEE 754; but ``float8_e4m3fn`` has two codes of NaN and no infinity, and ``float8_e8m0`` is a
power of two without a sign, whose last code is NaN.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

INTEGERS = {f"{sign}int{bits}": bits for sign in ("u", "") for bits in range(1, 9)}
"""Bits of the whole numbers that have codes, by name."""
POWERS = "float8_e8m0"
"""The powers of two from 2**-127 to 2**127: scales of the OCP Microscaling Formats."""
_SPLIT = re.compile(r"float([2-8])_e([1-7])m([0-6])")


def split_of(name: str) -> tuple[int, int] | None:
    """Return the bits of exponent and of fraction of a float with a sign that ``name`` spells; None
    for any other name, and for bits that do not add up."""
    found = _SPLIT.fullmatch({"float8_e4m3fn": "float8_e4m3"}.get(name, name))
    if not found or name == "float8_e4m3":
        return None
    bits, exponent, fraction = map(int, found.groups())
    fits = 1 + exponent + fraction == bits and (bits < 8 or exponent > 1)
    return (exponent, fraction) if fits else None


@lru_cache(maxsize=64)
def values_of(name: str) -> np.ndarray:
    """Return the value of each bit pattern of an element type of up to 8 bits, in float64.

    Raises :class:`KeyError` for a name that is none of theirs.
    """
    if name in INTEGERS:
        values = np.arange(2 ** INTEGERS[name])
        if name.startswith("int"):
            values = np.where(values < len(values) // 2, values, values - len(values))
        table = values.astype(np.float64)
    elif name == POWERS:
        table = np.append(np.exp2(np.arange(-127.0, 128.0)), np.nan)
    else:
        split = split_of(name)
        if split is None:
            raise KeyError(name)
        table = _floats(*split, is_fn=name.endswith("fn"))
    table.setflags(write=False)
    return table


def _floats(exponent: int, fraction: int, is_fn: bool) -> np.ndarray:
    sizes = np.arange(2 ** (exponent + fraction))
    power, digits = sizes >> fraction, sizes & (2**fraction - 1)
    bias, one = 2 ** (exponent - 1) - 1, 2.0**fraction
    normal = (1 + digits / one) * np.exp2(power.astype(float) - bias)
    table = np.where(power > 0, normal, digits / one * 2.0 ** (1 - bias))
    if is_fn:
        table[-1] = np.nan
    elif 1 + exponent + fraction == 8:
        last = power == power[-1]
        table[last] = np.where(digits[last] > 0, np.nan, np.inf)
    return np.concatenate([table, -table])
