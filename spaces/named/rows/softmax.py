"""Softmax of rows."""

from tilewright.spaces.language import Program, program

EXAMPLE = "r=4096 c=1024"


def softmax(r: int, c: int, dtype: str = "float32") -> Program:
    """Rows of positive numbers that add up to 1."""
    return program("y[r, c] = softmax[c](x[r, c])", dtype=dtype, r=r, c=c)
