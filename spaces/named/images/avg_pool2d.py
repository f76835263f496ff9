"""Means over windows of images."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import padded, place, window

EXAMPLE = "n=8 c=64 h=56 w=56 r=2 stride=2"


def avg_pool2d(
    n: int, c: int, h: int, w: int, r: int,
    stride: int = 1, padding: int = 0, dtype: str = "float32",
) -> Program:  # fmt: skip
    """The mean of each window of r x r; what lies outside of the image counts as zero."""
    steps = (stride, padding, 1)
    row, column = place("p", "r", *steps), place("q", "s", *steps)
    read = padded(f"x[n, c, {row}, {column}]", padding, "0")
    text = f"x: {dtype}[n, c, {h}, {w}]; y[n, c, p, q] = sum[r, s]({read}) / size(r, s)"
    extents = {"n": n, "c": c, "p": window(h, r, *steps), "q": window(w, r, *steps)}
    return program(text, dtype=dtype, **extents, r=r, s=r)
