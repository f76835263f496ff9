"""Convolutions of images."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named import _parts as parts

EXAMPLE = 'n=8 c=64 h=56 w=56 o=128 r=3 s=3 stride=2 padding=1 epilogue="relu(x + bias[o])"'


def conv2d(
    n: int, c: int, h: int, w: int, o: int, r: int, s: int,
    stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
    layout: str = "NCHW", dtype: str = "float32", out: str = "", epilogue: str = "",
) -> Program:  # fmt: skip
    """``o`` channels of sums over windows of r x s, the image NCHW or NHWC; groups=c: depthwise."""
    steps = (stride, padding, dilation)
    p, q = parts.window(h, r, *steps), parts.window(w, s, *steps)
    entry, own = parts.channel(o, c, groups)
    row, column = parts.place("p", "r", *steps), parts.place("q", "s", *steps)
    if parts.chosen("layout", layout, ("NCHW", "NHWC")) == "NCHW":
        shape, tap, result = f"n, {c}, {h}, {w}", "o, c, r, s", "n, o, p, q"
        read = f"image[n, {entry}, {row}, {column}]"
    else:
        shape, tap, result = f"n, {h}, {w}, {c}", "o, r, s, c", "n, p, q, o"
        read = f"image[n, {row}, {column}, {entry}]"
    sums = f"sum[c, r, s]({parts.padded(read, padding, '0')} * filter[{tap}])"
    lines = f"image: {dtype}[{shape}]; filter: {dtype}; y[{result}] = "
    extents = {"n": n, "o": o, "p": p, "q": q, "c": own, "r": r, "s": s}
    to = parts.output_dtype(dtype, out)
    return program(lines + parts.finished(epilogue, sums), dtype=to, **extents)
