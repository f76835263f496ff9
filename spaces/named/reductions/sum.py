"""Sums over any dimensions of an array."""

from tilewright.spaces.language import Program
from tilewright.spaces.named.reductions._reduction import reduction

EXAMPLE = "shape=64x128x256 over=0,2"


def sum(shape: str, over: str, dtype: str = "float32") -> Program:
    """The sum over some dimensions."""
    return reduction("sum", shape, over, dtype)
