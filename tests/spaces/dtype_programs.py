"""Programs with arrays of int64, uint8 and bool, for each family of templates that takes them."""

PROGRAMS = {
    "rows of a table": "t: int64[i](index < 9)\nw: float32[9, j]\ny[i,j] = w[t[i], j]",
    "a mask": "m: bool[i,j]\ny[i,j] = select(m[i,j], x[i,j], 0)",
    "a mask of scores": "m: bool[i,j]\ny[i,j] = softmax[j](select(m[i,j], x[i,j], -1e30))",
    "a mask that bounds": "m: bool[i,j]\nwhere m[i,j]\ny[i] = sum[j](x[i,j])",
    "places": "y: int64\ny[i] = argmax[j](x[i,j])",
    "truths": "y: bool\ny[i,j] = select(x[i,j] > 0.3, 1, 0)",
    "large numbers": "x: int64[i,j]\ny: int64\ny[i,j] = x[i,j] * 3 + j",
    "bytes": "x: uint8[i,j]\ny: uint8\ny[i,j] = x[i,j] * 50 - j",
    "bytes in a sum": "m: uint8[i,j]\ny[i] = sum[j](x[i,j] * m[i,j]) / (1 + sum[j](m[i,j]))",
    "bytes of columns": "m: int8[j]\nn: uint8[i]\ny[i,j] = x[i,j] * m[j] + n[i]",
    "bytes beyond floats": "m: uint8[i,j]\ny[i,j] = m[i,j] * 100000000 + x[i,j]",
    "a copy": "x: bool[i,j]\ny: bool\ny[j,i] = x[i,j]",
    "labels": "l: int64[i](index < 20)\nx: float32[i, 20]\ny[i,j] = x[i, l[i]] * z[j]",
    "entries of 16 bits": "t: uint16[i](index < 40000)\ny[i,j] = x[i,j] * t[i]",
    "labels of 16 bits": "l: uint16[i](index < 20)\nx: float32[i, 20]\ny[i,j] = x[i, l[i]] * z[j]",
    "a mask of attention": (
        "m: bool[i,j]\ny[i,e] = sum[j](softmax[j](select(m[i,j], sum[d](q[i,d] * k[j,d]), -1e30))"
        " * v[j,e])"
    ),
    "documents": (
        "o: int64[i](index < 3)\ng: int64[j](index < 3)\nwhere o[i] == g[j]\n"
        "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e])"
    ),
}


def extents(text: str) -> dict[str, int]:
    """The extents of the axes that a program has."""
    known = {"i": 17, "j": 37, "d": 8, "e": 20}
    return {
        axis: extent for axis, extent in known.items() if f"{axis}]" in text or f"{axis}," in text
    }
