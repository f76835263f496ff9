"""Sums over the prefixes or suffixes of a dimension of an array."""

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language import Program, program
from tilewright.spaces.named.reductions._reduction import extents_of

EXAMPLE = "shape=64x256 over=1"
OPERATORS = {"inclusive": "<=", "exclusive": "<", "reverse": ">=", "reverse_exclusive": ">"}


def cumsum(shape: str, over: int, kind: str = "inclusive", dtype: str = "float32") -> Program:
    """The sums of each element and those before it, along one dimension."""
    extents = extents_of(shape)
    axis = f"d{over}"
    if axis not in extents:
        raise InputError(f"over={over} is no dimension; allowed: 0 to {len(extents) - 1}")
    if kind not in OPERATORS:
        raise InputError(f"kind={shown(kind)}; allowed: {', '.join(OPERATORS)}")
    read = ", ".join("t" if other == axis else other for other in extents)
    value = f"sum[t: t {OPERATORS[kind]} {axis}](x[{read}])"
    return program(f"y[{', '.join(extents)}] = {value}", dtype=dtype, **extents, t=extents[axis])
