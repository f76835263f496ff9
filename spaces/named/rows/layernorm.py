"""Normalisation of rows by mean and variance."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import chosen, positive

EXAMPLE = "r=4096 c=1024 outputs=y,mean,rstd"


def layernorm(
    r: int, c: int, eps: float = 1e-5, outputs: str = "y", dtype: str = "float32"
) -> Program:
    """``(x - mean) * rstd * weight + bias``; ``outputs=y,mean,rstd`` gives those as well."""
    positive(eps=eps)
    chosen("outputs", outputs, ("y", "y,mean,rstd"))
    text = f"""
        mean[r] = mean[c](x[r, c])
        rstd[r] = rsqrt(var[c](x[r, c]) + {eps!r})
        y[r, c] = (x[r, c] - mean[r]) * rstd[r] * weight[c] + bias[c]
        -> {outputs}
    """
    return program(text, dtype=dtype, r=r, c=c)
