"""Two products with one matrix, the first the gate of the second."""

from tilewright.spaces.language import Program, program

EXAMPLE = "m=512 n=1024 k=1024 dtype=bfloat16"


def gated_matmul(m: int, n: int, k: int, dtype: str = "float32") -> Program:
    """``silu(A * gate) * (A * up)``, products of matrices in the brackets."""
    text = "C[m, n] = silu(sum[k](A[m, k] * gate[k, n])) * sum[k](A[m, k] * up[k, n])"
    return program(text, dtype=dtype, m=m, n=n, k=k)
