"""Logarithms of the softmax of rows."""

from tilewright.spaces.language import Program, program

EXAMPLE = "r=4096 c=1024"


def log_softmax(r: int, c: int, dtype: str = "float32") -> Program:
    """The logarithm of each row's softmax."""
    return program("y[r, c] = x[r, c] - logsumexp[c](x[r, c])", dtype=dtype, r=r, c=c)
