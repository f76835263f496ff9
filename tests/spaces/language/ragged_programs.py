"""Programs over ranges of entries, by a sorted table and by pointers, and graphs to try them on."""

from __future__ import annotations

import numpy as np

from tilewright.spaces.language import program
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.language.program import Program

ROWS, ENTRIES, NODES = 8, 24, 9
BY_TABLE = "row: int32[e](sorted < r); col: int32[e](index < n); where row[e] == r; "
BY_POINTERS = (
    "ptr: int32[r+1](sorted < e+1); col: int32[e](index < n); "
    "where ptr[r] <= e and e < ptr[r + 1]; "
)
BODIES = {
    "sparse times dense": "y[r,c] = sum[e](val[e] * x[col[e],c])",
    "greatest": "y[r,c] = max[e](x[col[e],c])",
    "mean": "y[r,c] = mean[e](x[col[e],c])",
    "messages": "y[r,c] = sum[e](relu(x[col[e],c] + edge[e,c]) * val[e])",
    "an array of messages": "m[e,c] = relu(x[col[e],c] + b[c]); y[r,c] = sum[e](m[e,c] * val[e])",
    "attention": "y[r,c] = sum[e](softmax[e](sum[d](q[r,d] * k[col[e],d])) * v[col[e],c])",
    "heads": "y[r,h,c] = sum[e](softmax[e](sum[d](q[r,h,d] * k[col[e],h,d])) * v[col[e],h,c])",
    "sparse times vector": "s[r] = sum[e](val[e] * w[col[e]]); y[r] = 2 * s[r]",
    "places": "y[r,c] = argmax[e](x[col[e],c])",
    "places of edges": "y[r] = argmin[e](val[e] + w[col[e]])",
    "blocks": "y[r,i,c] = sum[e,j](val[e,i,j] * x[col[e],j,c])",
    "turned": "y[c,r] = prod[e](x[col[e],c])",
}
SCORES = {
    "scores": "s[e] = sum[d](q[row[e],d] * k[col[e],d])",
    "scores of heads": "z[e,h] = sum[d](q[row[e],h,d] * k[col[e],h,d]); s[e,h] = relu(z[e,h] / 2)",
}
"""Values of entries that tables choose the factors of."""
EXTENTS = {"c": 3, "d": 2, "h": 2, "i": 2, "j": 2}


def text_of(name: str, pointers: bool = False, nodes: int = NODES, options: str = "") -> str:
    """The text of a program over ranges; ``options`` are those of its table."""
    head = BY_POINTERS if pointers else BY_TABLE
    head = head.replace("index < n", f"index < {nodes}")
    head = head.replace("sorted < r)", f"sorted < r{options})")
    return head.replace("sorted < e+1)", f"sorted < e+1{options})") + BODIES[name]


def extents_of(name: str, rows: int = ROWS, entries: int = ENTRIES, **more: int) -> dict[str, int]:
    """The extents of its axes."""
    used = {axis: n for axis, n in {**EXTENTS, **more}.items() if f"{axis}]" in BODIES[name]
            or f"{axis}," in BODIES[name]}  # fmt: skip
    return {"r": rows, "e": entries, **used}


def ragged_program(name: str, pointers: bool = False, **more: int) -> Program:
    """The program called ``name``."""
    return program(text_of(name, pointers), **extents_of(name, **more))


def graphs(rows: int = ROWS, entries: int = ENTRIES) -> dict[str, np.ndarray]:
    """The rows of all entries, sorted: none for some rows, one long row, a row for each."""
    random = np.sort(np.random.default_rng(0).integers(0, rows, entries))
    long = np.sort(np.where(np.arange(entries) % 4, rows // 2, random))
    return {
        "at random": random,
        "every second row empty": random // 2 * 2,
        "one long row": long,
        "all in the first row": 0 * random,
        "all in the last row": 0 * random + rows - 1,
        "none in the first and last": np.sort(1 + random % (rows - 2)),
    }


def inputs_of(made: Program, rows: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs of a program whose entries are in these ``rows``, some of them twice."""
    inputs = draw(made, seed)
    inputs["col"][1::5] = inputs["col"][0]
    if "row" in inputs:
        return {**inputs, "row": rows.astype(np.int32)}
    starts = np.searchsorted(rows, np.arange(made.extent["r"] + 1))
    return {**inputs, "ptr": starts.astype(np.int32)}
