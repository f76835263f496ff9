"""A product with normalised rows."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import positive

EXAMPLE = "m=512 n=1024 k=1024"


def rmsnorm_matmul(m: int, n: int, k: int, eps: float = 1e-6, dtype: str = "float32") -> Program:
    """``rmsnorm(A) * B``: rows of A are normalised over ``k`` and weighted before the product."""
    positive(eps=eps)
    scale = f"rsqrt(mean[k](A[m, k] * A[m, k]) + {eps!r})"
    text = f"C[m, n] = sum[k](A[m, k] * {scale} * weight[k] * B[k, n])"
    return program(text, dtype=dtype, m=m, n=n, k=k)
