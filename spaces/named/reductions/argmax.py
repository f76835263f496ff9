"""Places of maxima over any dimensions of an array."""

from tilewright.spaces.language import Program
from tilewright.spaces.named.reductions._reduction import reduction

EXAMPLE = "shape=64x128x256 over=0,2"


def argmax(shape: str, over: str, dtype: str = "float32") -> Program:
    """The place of the greatest value over some dimensions, the first of equals."""
    return reduction("argmax", shape, over, dtype)
