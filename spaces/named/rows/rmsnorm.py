"""Normalisation of rows by the root of their mean square."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import positive

EXAMPLE = "r=4096 c=1024 dtype=bfloat16"


def rmsnorm(r: int, c: int, eps: float = 1e-6, dtype: str = "float32") -> Program:
    """``x / sqrt(mean(x * x) + eps) * weight`` for each row."""
    positive(eps=eps)
    scale = f"rsqrt(mean[c](x[r, c] * x[r, c]) + {eps!r})"
    return program(f"y[r, c] = x[r, c] * {scale} * weight[c]", dtype=dtype, r=r, c=c)
