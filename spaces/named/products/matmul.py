"""Products of matrices."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import finished, matrix, output_dtype

READS = ("B[k, n]", "B[n, k]")
"""The right matrix as it is, and packed."""
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
    """``C[m, n] = epilogue(sum[k](A[m, k] * B[k, n]))``, each in row or col order, B also packed.

    A packed B is of columns and depth (:mod:`spaces.workloads.packing`)."""
    result, is_packed = output_dtype(dtype, out), b == "packed"
    right = f"B: {dtype}[n, k](packed)" if is_packed else matrix("B", dtype, b)
    arrays = [matrix("A", dtype, a), right, matrix("C", result, c)]
    line = f"C[m, n] = {finished(epilogue, f'sum[k](A[m, k] * {READS[is_packed]})')}"
    return program("\n".join([*arrays, line]), dtype=result, m=m, n=n, k=k)
