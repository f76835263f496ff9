"""Constants: operands whose elements a program's text has, as ``C: float32[2, 2] = {0, 1, -1, 0}``.

Elements are rounded to the constant's dtype, and are the shortest decimals that round to it.
"""

from __future__ import annotations

import numpy as np

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program

DTYPES = ("float64", "float32", "float16", "bfloat16")
"""Dtypes of constants."""


def elements_of(name: str, kind: str, values: np.ndarray) -> tuple[float, ...]:
    """Return values as elements of a constant in a dtype, rows first; :class:`InputError` if it is
    no dtype of constants, or one of them is not finite."""
    if kind not in DTYPES:
        raise InputError(f"the constant {name} is {kind}; allowed: {', '.join(DTYPES)}")
    wide = np.asarray(values, np.float64).reshape(-1)
    with np.errstate(over="ignore"):
        cast = dtype(kind).cast(wide)
    for value, found in zip(wide, np.isfinite(cast), strict=True):
        if not found:
            raise InputError(f"the constant {name} holds {value:g}; allowed: finite {kind}")
    shortest = map(str, cast) if kind == "float32" else cast
    return tuple(float(value) + 0.0 for value in shortest)


def constant_arrays(program: Program) -> dict[str, np.ndarray]:
    """Return the elements of all constants in their shapes, in float64, by name."""
    return {o.name: np.reshape(o.elements or (), o.shape) for o in program.constants}
