"""Products that write their sums and what is computed of them, for tests of many templates."""

from __future__ import annotations

import re

from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

LINEAR = (
    "c: float32[j]; a: float32[i, k]; b: float32[j, k]; s[i, j] = sum[k](a[i, k] * b[j, k]); "
    "t[i, j] = s[i, j] + c[j]; y[i, j] = gelu(t[i, j])"
)
PROGRAMS = {
    "a sum and its value": (
        "a: float32[i, k]; b: float32[j, k]; t[i, j] = sum[k](a[i, k] * b[j, k]); "
        "y[i, j] = tanh(t[i, j]); -> y, t"
    ),
    "a linear layer": f"{LINEAR}; -> t, y",
    "a slice": f"{LINEAR}; y: float32[i, j](leading=50); -> t, y",
    "slices of both": (
        f"{LINEAR}; t: float32[i, j](leading=40); y: float32[i, j](leading=50); -> t, y"
    ),
    "columns first": (
        f"{LINEAR}; t: float32[i, j](order=(1, 0)); y: float32[i, j](order=(1, 0)); -> t, y"
    ),
    "two dtypes": (
        "a: bfloat16[i, k]; b: bfloat16[j, k]; t[i, j] = sum[k](a[i, k] * b[j, k]); "
        "y[i, j] = relu(t[i, j]); t: bfloat16[i, j]; y: float32[i, j]; -> t, y"
    ),
    "names of a matmul": (
        "p: float32[i, k]; q: float32[j, k]; t[i, j] = sum[k](p[i, k] * q[j, k]); "
        "C[i, j] = t[i, j] + 1; x[i, j] = relu(t[i, j]); B[i, j] = -t[i, j]; -> x, C, B, t"
    ),
    "a batch of three outputs": (
        "r: float32[l, i, j]; t[l, i, j] = sum[k](a[l, i, k] * b[l, k, j]); "
        "y[l, i, j] = t[l, i, j] + r[l, i, j]; z[l, i, j] = exp(y[l, i, j] / 9); -> z, t, y"
    ),
}
STORE = r"tw_store_most_float32\({} \+ (.*?), .*, left\);"
ONLY_SUM = r"tw_store_most_float32({} + \1, x, left);"
BUGS_IN_C = {
    "the second output is written before its epilogue": (
        STORE.format("e_y"),
        ONLY_SUM.format("e_y"),
    ),
    "the first output has no bias": (STORE.format("c"), ONLY_SUM.format("c")),
    "the first output goes to the buffer of the second": (
        r"\bc = call->buffers\[3\]",
        "c = call->buffers[4]",
    ),
}
"""Mistakes in C kernels of the slice: a pattern, and what takes the place of its first match."""
EXTENTS = {"i": 33, "j": 37, "k": 19, "l": 3}


def made(text: str, **extents: int) -> Workload:
    """The workload of a text with those of these extents that it names, others as they are."""
    known = EXTENTS | extents
    return workload(
        text, **{axis: n for axis, n in known.items() if re.search(rf"\b{axis}\b", text)}
    )
