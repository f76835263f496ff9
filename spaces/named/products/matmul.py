"""Products of matrices."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import finished, matrix, output_dtype

EXAMPLE = 'm=512 n=512 k=512 epilogue="relu(x + bias[n])"'


def matmul(
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    out: str = "",
    a: str = "row",
    b: str = "row",
    c: str = "row",
    epilogue: str = "",
) -> Program:
    """``C[m, n] = epilogue(sum[k](A[m, k] * B[k, n]))``, each matrix in row or col order."""
    result = output_dtype(dtype, out)
    arrays = [matrix("A", dtype, a), matrix("B", dtype, b), matrix("C", result, c)]
    line = f"C[m, n] = {finished(epilogue, 'sum[k](A[m, k] * B[k, n])')}"
    return program("\n".join([*arrays, line]), dtype=result, m=m, n=n, k=k)
