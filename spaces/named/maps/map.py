"""Elementwise operations on matrices, transposed and broadcast as the expression reads them."""

from tilewright.spaces.language import Program, program

EXAMPLE = 'm=4096 n=1024 expression="relu(x[n, m]) * scale[n]"'


def map(m: int, n: int, expression: str, dtype: str = "float32") -> Program:
    """``y[m, n] = expression``, over operands of any name."""
    return program(f"y[m, n] = {expression}", dtype=dtype, m=m, n=n)
