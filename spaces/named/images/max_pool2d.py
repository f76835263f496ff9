"""Maxima over windows of images."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import padded, place, window

EXAMPLE = "n=8 c=64 h=112 w=112 r=3 stride=2 padding=1"


def max_pool2d(
    n: int, c: int, h: int, w: int, r: int,
    stride: int = 1, padding: int = 0, dilation: int = 1, dtype: str = "float32",
) -> Program:  # fmt: skip
    """The greatest value of each window of r x r; what lies outside of the image is not in it."""
    steps = (stride, padding, dilation)
    row, column = place("p", "r", *steps), place("q", "s", *steps)
    read = padded(f"x[n, c, {row}, {column}]", padding, "-inf")
    text = f"x: {dtype}[n, c, {h}, {w}]; y[n, c, p, q] = max[r, s]({read})"
    extents = {"n": n, "c": c, "p": window(h, r, *steps), "q": window(w, r, *steps)}
    return program(text, dtype=dtype, **extents, r=r, s=r)
