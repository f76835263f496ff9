"""Convolutions of sequences."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named import _parts as parts

EXAMPLE = "n=8 c=64 w=1024 o=64 r=5 padding=2"


def conv1d(
    n: int, c: int, w: int, o: int, r: int,
    stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
    layout: str = "NCW", dtype: str = "float32", out: str = "", epilogue: str = "",
) -> Program:  # fmt: skip
    """``o`` channels of sums over windows of r elements; the sequence NCW or NWC."""
    steps = (stride, padding, dilation)
    entry, own = parts.channel(o, c, groups)
    row = parts.place("p", "r", *steps)
    if parts.chosen("layout", layout, ("NCW", "NWC")) == "NCW":
        shape, read, tap, result = f"n, {c}, {w}", f"{entry}, {row}", "o, c, r", "n, o, p"
    else:
        shape, read, tap, result = f"n, {w}, {c}", f"{row}, {entry}", "o, r, c", "n, p, o"
    taken = parts.padded(f"line[n, {read}]", padding, "0")
    lines = f"line: {dtype}[{shape}]; filter: {dtype}; y[{result}] = "
    extents = {"n": n, "o": o, "p": parts.window(w, r, *steps), "c": own, "r": r}
    sums, to = f"sum[c, r]({taken} * filter[{tap}])", parts.output_dtype(dtype, out)
    return program(lines + parts.finished(epilogue, sums), dtype=to, **extents)
