"""Batched products of matrices."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import finished, matrix, output_dtype, whole_share

EXAMPLE = "batch=32 m=512 n=512 k=64 shared=4"


def bmm(
    batch: int,
    m: int,
    n: int,
    k: int,
    shared: int = 1,
    dtype: str = "float32",
    out: str = "",
    b: str = "row",
    epilogue: str = "",
) -> Program:
    """A product for each batch; ``shared`` neighbours share one B, as grouped heads do."""
    whole_share("shared", shared, "batch", batch)
    result = output_dtype(dtype, out)
    head = f"batch // {shared}" if shared > 1 else "batch"
    sums = f"sum[k](A[batch, m, k] * B[{head}, k, n])"
    arrays = [f"A: {dtype}", matrix("B", dtype, b, batches=1), f"C: {result}"]
    line = f"C[batch, m, n] = {finished(epilogue, sums)}"
    return program("\n".join([*arrays, line]), dtype=result, batch=batch, m=m, n=n, k=k)
