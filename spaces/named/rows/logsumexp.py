"""Logarithms of sums of exponentials."""

from tilewright.spaces.language import Program, program

EXAMPLE = "r=4096 c=1024"


def logsumexp(r: int, c: int, dtype: str = "float32") -> Program:
    """The logarithm of the sum of each row's exponentials."""
    return program("y[r] = logsumexp[c](x[r, c])", dtype=dtype, r=r, c=c)
