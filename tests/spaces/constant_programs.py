"""Programs with constants, and constants with zeros, ones, negatives and repeats."""

from __future__ import annotations

import numpy as np

PRODUCT = "z[e,k,u] = sum[i,j](C[i,j,k] * x[e,i,u] * y[e,j])"
SIZES = {"e": 7, "k": 4, "u": 19, "i": 3, "j": 2}
EDGES = (
    "axes n=9, e=40, k=3, u=9, i=3, j=3; row: int32[e](sorted < n); col: int32[e](index < n); "
    "C: float32[3,3,3] = {0,0,0, 0,0,.7, 0,-.7,0, 0,0,-.7, 0,0,0, .7,0,0, 0,.7,0, -.7,0,0, 0,0,0}; "
    "z[n,k,u] = sum[e: row[e] == n](sum[i,j](C[i,j,k] * x[col[e],i,u] * y[e,j]))"
)
PROGRAMS = {
    "a product of two": PRODUCT,
    "sums that stay": "z[e,j] = sum[k,i,u](C[i,j,k] * x[e,i,u] * y[e,k,u])",
    "along edges": "row: int32[e](sorted < 5); "
    "z[u,k] = sum[e: row[e] == u](sum[i,j](C[i,j,k] * x[e,i] * y[e,j]))",
    "a map": "z[e,i] = C[i,0,1] * x[e,i] + C[i,1,0] / 2",
    "a quotient as index": "z[i,u] = sum[j](inside(C[i - 1, j, u % 4], 0) * x[j, u])",
    "no product": "z[e,k] = sum[i,j](exp(C[i,j,k] * x[e,i]) - C[i,j,k])",
    "selected": "z[e,k] = sum[i,j](select(C[i,j,k] > 0, x[e,i], y[e,j]))",
    "twice": "z[e,i,k] = sum[j](C[i,j,k] * sum[u](C[u % 3,j,0] * x[e,u]))",
}


def braces(elements: np.ndarray) -> str:
    """The elements as the language writes them."""
    if not elements.ndim:
        return repr(float(elements))
    return "{" + ", ".join(map(braces, elements)) + "}"


def few(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """A constant of which half is zero, with ones, negatives and repeats."""
    generator = np.random.default_rng(seed)
    values = generator.choice([1, -1, 0.5, -0.1, 3], shape)
    return np.where(generator.random(shape) < 0.5, values, 0.0)


def with_constant(text: str, seed: int = 0, **sizes: int) -> str:
    """The program with a constant C of the shape [i, j, k], and the extents that it uses."""
    known = SIZES | sizes
    elements = few(tuple(known[axis] for axis in "ijk"), seed)
    used = [a for a in known if any(f"{o}{a}{c}" in text for o in "[, (" for c in "],: )")]
    axes = ", ".join(f"{axis}={known[axis]}" for axis in used)
    shape = ", ".join(str(known[axis]) for axis in "ijk")
    return f"axes {axes}; C: float32[{shape}] = {braces(elements)}; {text}"
