"""Products of rows, each with the matrix of its expert."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import finished, matrix, output_dtype, positive

EXAMPLE = 't=1024 n=512 k=256 experts=8 rows=512 b=col epilogue="relu(x + bias[expert[t], n])"'


def grouped_matmul(
    t: int, n: int, k: int, experts: int, rows: int = 0,
    dtype: str = "float32", out: str = "", b: str = "row", epilogue: str = "",
) -> Program:  # fmt: skip
    """``C[t, n] = sum[k](A[t, k] * B[expert[t], k, n])``, rows sorted by expert.

    Experts have as many rows as it happens, or none. With ``rows``, row ``t`` is gathered: it is
    ``row[t]`` of that many. ``b`` is the order of each matrix, ``row`` or ``col``.
    """
    positive(experts=experts)
    lines = [f"expert: int32[t](sorted < {experts})", f"A: {dtype}"]
    lines.append(matrix("B", f"{dtype}[{experts}, k, n]", b, batches=1))
    if rows:
        positive(rows=rows)
        lines.append(f"row: int32[t](index < {rows})")
    row = "row[t]" if rows else "t"
    sums = f"sum[k](A[{row}, k] * B[expert[t], k, n])"
    lines.append(f"C[t, n] = {finished(epilogue, sums)}")
    return program("\n".join(lines), dtype=output_dtype(dtype, out), t=t, n=n, k=k)
