"""Means over any dimensions of an array."""

from tilewright.spaces.language import Program
from tilewright.spaces.named.reductions._reduction import reduction

EXAMPLE = "shape=64x128x256 over=0,2"


def mean(shape: str, over: str, dtype: str = "float32") -> Program:
    """The mean over some dimensions."""
    return reduction("mean", shape, over, dtype)
