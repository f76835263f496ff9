"""Transposed convolutions of images: gradients of convolutions, and layers that enlarge images."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named import _parts as parts

EXAMPLE = 'n=8 c=64 h=28 w=28 o=32 r=4 s=4 stride=2 padding=1 epilogue="relu(x + bias[o])"'


def conv2d_transposed(
    n: int, c: int, h: int, w: int, o: int, r: int, s: int,
    stride: int = 1, padding: int = 0, output_padding: int = 0, dilation: int = 1, groups: int = 1,
    layout: str = "NCHW", dtype: str = "float32", out: str = "", epilogue: str = "",
) -> Program:  # fmt: skip
    """``o`` channels of pixels times filters of r x s, ``stride`` apart and summed: NCHW, NHWC."""
    steps = (stride, padding, dilation)
    p, q = (parts.spread(*size, *steps, output_padding) for size in ((h, r), (w, s)))
    entry, own = parts.channel(o, c, groups)
    to = "o" if groups == 1 else f"o % {o // groups}"
    at = [parts.reached(*pair, padding, dilation) for pair in (("p", "r"), ("q", "s"))]
    row, column = (f"{place} // {stride}" for place in at)
    if parts.chosen("layout", layout, ("NCHW", "NHWC")) == "NCHW":
        shape, tap, result = f"n, {c}, {h}, {w}", f"{entry}, {to}, r, s", "n, o, p, q"
        taken = parts.landing(f"image[n, {entry}, {row}, {column}]", at, stride)
    else:
        shape, tap, result = f"n, {h}, {w}, {c}", f"{entry}, r, s, {to}", "n, p, q, o"
        taken = parts.landing(f"image[n, {row}, {column}, {entry}]", at, stride)
    lines = f"image: {dtype}[{shape}]; filter: {dtype}; y[{result}] = "
    extents = {"n": n, "o": o, "p": p, "q": q, "c": own, "r": r, "s": s}
    sums = parts.finished(epilogue, f"sum[c, r, s]({taken} * filter[{tap}])")
    return program(lines + sums, dtype=parts.output_dtype(dtype, out), **extents)
