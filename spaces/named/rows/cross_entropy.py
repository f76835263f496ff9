"""Cross entropy of rows with labels."""

from tilewright.spaces.language import Program, program

EXAMPLE = "r=4096 c=32000"


def cross_entropy(r: int, c: int, dtype: str = "float32") -> Program:
    """Minus the logarithm of the softmax at each row's label."""
    text = "label: int32[r](index < c); y[r] = logsumexp[c](x[r, c]) - x[r, label[r]]"
    return program(text, dtype=dtype, r=r, c=c)
