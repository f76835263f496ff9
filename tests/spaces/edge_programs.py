"""Random programs of each kind that kernels exist for, as text with extents, and what is written
into their operands."""

from __future__ import annotations

import random

from hypothesis import reject
from hypothesis import strategies as st

from tests.spaces.edge_inputs import FILLS
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program

Case = tuple[str, dict[str, int], dict[str, str], int]
"""Text, extents, fills by operand and a seed."""

SCORES = [
    *("x[r,c]", "x[r,c] + z[c]", "x[r,c] + w[r,c]", "x[r,c] * 3e9", "x[r,c] * 0.001"),
    *("x[r,c] * w[r,c]", "x[r,c] - z[c] * 2", "-x[r,c]", "x[r,c] / 0.3", "x[r,c] * s[r]"),
    *("inside(x[r,c - 3], 0)", "select(c <= r, x[r,c], z[c])", "select(c % 3 == 1, x[r,c], -1e30)"),
    *("x[t[r],c]", "tanh(x[r,c])", "abs(x[r,c]) + z[c]"),
]
ROWS = [
    "y[r,c] = softmax[c]({0})",
    "y[r] = logsumexp[c]({0})",
    "y[r] = logsumexp[c]({0}) - x[r,l[r]]",
    "m[r] = max[c]({0}); e[r,c] = exp(({0} - m[r]) * 3.5); q[r] = sum[c](e[r,c]); "
    "y[r,c] = e[r,c] / q[r]",
    "m[r] = max[c]({0}); y[r] = sum[c](exp2(({0}) * 1.5 - m[r] * 1.5))",
    "m[r] = min[c]({0}); y[r] = sum[c](exp(m[r] - ({0})))",
    "m[r] = max[c]({0}); y[r] = sum[c](exp({0} - m[r]) * w[r,c])",
    "m[r] = max[c]({0}); q[r] = sum[c](exp({0} - m[r])); y[r] = m[r] + log(q[r]); v[r] = q[r]; "
    "-> y, v",
    "y[r] = max[c]({0}) - min[c]({0})",
    "y[r] = max[c]({0}); v[r] = min[c]({0}); u[r] = sum[c]({0}); -> y, v, u",
    "y: int32; y[r] = argmax[c]({0})",
    "y: int32; y[r] = argmin[c]({0})",
    "y: int32; y[r] = argmax[c]({0}); v[r] = max[c]({0}); -> y, v",
    "y[r] = sum[c]({0})",
    "y[r] = mean[c]({0})",
    "y[r] = prod[c]({0})",
    "y[r] = var[c]({0})",
    "y[r,c] = ({0} - mean[c]({0})) * rsqrt(var[c]({0}) + 0.00001) * z[c]",
    "y[r,c] = x[r,c] * rsqrt(mean[c](x[r,c] * x[r,c]) + 0.00001)",
    "y[r] = sum[c](({0}) * w[r,c])",
    "y[r] = sum[c](softmax[c]({0}) * w[r,c])",
    "y[r] = sum[c,g](x[r,c] * v[g] + u[c,g])",
    "y[r] = max[c,g](x[r,c] * v[g])",
    "y[r] = logsumexp[c,g](x[r,c] + v[g])",
    "m[r] = max[c](abs({0})); y[r,c] = x[r,c] / (m[r] + 0.001)",
]
COLUMNS = [
    "y[c] = sum[r]({0})",
    "y[c] = max[r]({0})",
    "y[c] = min[r]({0})",
    "y[c] = prod[r]({0})",
    "y[c] = mean[r]({0})",
    "y[c] = max[r](x[r,c] * w[r,c])",
    "y[r,c] = softmax[r]({0})",
    "y[c] = var[r](x[r,c])",
]
WINDOWS = [
    "y[b,p] = max[k](inside(x[b,{2} * p + k - 1], -inf))",
    "y[b,p] = min[k](inside(x[b,{2} * p + k - 1], inf))",
    "y[b,p] = sum[k](inside(x[b,{2} * p + k - 1], 0)) / 3",
    "y[b,p,g] = max[k](x[b,{2} * p + k,g])",
    "y[b,p,g] = sum[k](inside(x[b,{2} * p + k - 1,g], 0) * z[k,g])",
    "y[b,p] = prod[k](inside(x[b,{2} * p + k - 1], 1))",
    "y[b,o,p] = sum[k,g](inside(x[b,g,{2} * p + k - 1], 0) * z[o,g,k]) + u[o]",
    "y[b,p,o] = sum[k,g](inside(x[b,{2} * p + k - 1,g], 0) * z[o,k,g])",
]
PRODUCTS = [
    "y[i,j] = sum[k](a[i,k] * b[k,j])",
    "y[i,j] = sum[k](a[i,k] * b[j,k])",
    "y[i,j] = sum[k](a[k,i] * b[k,j])",
    "y[h,i,j] = sum[k](a[h,i,k] * b[h,k,j])",
    "y[i,j] = {1}(sum[k](a[i,k] * b[k,j]) + u[j])",
    "y[i,j] = sum[k](a[i,k] * b[k,j]) * 0.5 + v[i,j]",
    "y[i,j] = sum[k]({1}(a[i,k]) * b[k,j])",
    "s[i,j] = sum[k](a[i,k] * b[k,j]); y[i,j] = softmax[j](s[i,j])",
    "s[i,j] = sum[k](a[i,k] * b[k,j]); y[i] = max[j](s[i,j])",
    "y: int32; y[i] = argmax[j](sum[k](a[i,k] * b[j,k]))",
    "s[i,j] = sum[k](a[i,k] * b[k,j]); m[i] = max[j](s[i,j] * s[i,j]); "
    "y[i,j] = s[i,j] / (1 + m[i]); -> m, y",
    "p[i,j] = softmax[j](w[i,j]); y[i,k] = sum[j](p[i,j] * b[j,k])",
    "y[i,j] = silu(sum[k](a[i,k] * b[k,j])) * sum[k](a[i,k] * c[k,j])",
]
DOT = "sum[d](q[h,i,d] * k[h,j,d])"
BOUNDS = [
    "", "where j <= i\n", "where j <= i + 9\n", "n: int32[h](index < {j1})\nwhere j < n[h]\n",
    "where j <= i\nwhere i - j < 7\n", "where j < i - 4\n",
    "o: int32[h,i](index < 3)\ng: int32[h,j](index < 3)\nwhere o[h,i] == g[h,j]\n",
]  # fmt: skip
MARKS = ["{s}", "{s} * 0.3", "{s} + a[i,j]", "{s} * 0.3 + a[i,j] * 2", "9 * tanh({s} / 9)",
         "{s} + b[j] * (j - i)", "{s} * 3e6"]  # fmt: skip
ATTENTION = [
    "y[h,i,e] = sum[j](softmax[j]({s}) * v[h,j,e])",
    "p[h,i,j] = {s}\ny[h,i,e] = sum[j](softmax[j](p[h,i,j]) * v[h,j,e])\n"
    "l[h,i] = logsumexp[j](p[h,i,j])\n-> y, l",
    "p[h,i,j] = {s}\nm[h,i] = max[j](p[h,i,j])\n"
    "z[h,i] = sum[j](exp(p[h,i,j] - m[h,i])) + exp(sink[h] - m[h,i])\n"
    "y[h,i,e] = sum[j](exp(p[h,i,j] - m[h,i]) / z[h,i] * v[h,j,e])",
    "y[h,i] = max[j]({s})",
    "y[h,i] = logsumexp[j]({s})",
    "y[h,i,e] = sum[j](({s}) * v[h,j,e])",
    "y[h,i,e] = sum[j](sigmoid({s}) * v[h,j,e])",
    "p[h,i,j] = {s}\nm[h,i] = max[j](p[h,i,j])\n"
    "y[h,i,e] = sum[j](exp((p[h,i,j] - m[h,i]) * 2.5) * v[h,j,e])",
]
PAGED = (
    "t: int32[h,{pages}](index < {count})\nk: float32[{count},8,{d}]\nv: float32[{count},8,{e}]\n"
    "{bound}y[h,i,e] = sum[j](softmax[j](sum[d](q[h,i,d] * k[t[h,j // 8],j % 8,d]) * 0.3) "
    "* v[t[h,j // 8],j % 8,e])"
)
CALLS = ["relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid", "exp", "abs", "erf", "exp2",
         "sqrt", "log", "floor", "bfloat16", "float16", "rsqrt", "sin", "cos", "round", "log1p",
         "expm1", "atan", "trunc", "sign"]  # fmt: skip
LARGEST = ["large", "one largest", "mostly least", "rows of least", "least until the end"]
SMALLER = sorted(set(FILLS) - set(LARGEST))
"""What values of attention are: weighted sums are divided by the sum of weights last, and those of
the largest numbers are infinite."""
MAPS = [
    "y[i,j] = {1}(x[i,j])",
    "y[i,j] = {1}(x[i,j] + z[j]) + w[i,j]",
    "y[j,i] = x[i,j] * 2 - z[j]",
    "y[i,j] = select(x[i,j] > z[j], x[i,j], w[i,j])",
    "y[i,j] = max(x[i,j], min(w[i,j], z[j]))",
    "y[i,j] = inside(x[i - 2,j + 1], 7) + x[i,j]",
    "y[i,j] = select(j < 3, x[i,j], w[i,j] / z[j])",
    "y[i,j] = x[t[i],j] * z[j]",
    "y[j,i] = {1}(x[i,j])",
]
SIZES = [1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 70]
LONG = [*SIZES, 129, 200, 333, 700, 1100]
FEW = [1, 2, 3, 5, 8, 13]
STORED = ["float32"] * 3 + ["bfloat16"]


def row_cases(generator: random.Random) -> tuple[str, dict[str, int]]:
    text = generator.choice(ROWS + COLUMNS).format(generator.choice(SCORES))
    r, c = generator.choice(FEW), generator.choice(LONG)
    if generator.randint(0, 3) == 0:
        r, c = c, r
    sizes = {"r": r, "c": c} | ({"g": generator.choice(FEW)} if "g]" in text else {})
    text = _declared(text, {"t": f"int32[r](index < {r})", "l": f"int32[r](index < {c})"})
    if generator.randint(0, 7) == 0 and "t[r]" not in text and "l[r]" not in text:
        return f"x: float64[r,c]\n{text}", sizes
    return f"x: {generator.choice(STORED)}[r,c]\n{text}", sizes


def window_cases(generator: random.Random) -> tuple[str, dict[str, int]]:
    step = generator.randint(1, 2)
    text = generator.choice(WINDOWS).format("", "", step)
    p, k = generator.choice(SIZES), generator.randint(1, 4)
    length = step * (p - 1) + k
    extents = {
        "b": generator.choice(FEW),
        "p": p,
        "k": k,
        "g": generator.choice(SIZES),
        "o": generator.choice(SIZES),
    }
    used = {
        n: e for n, e in extents.items() if f"{n}," in text or f",{n}" in text or f"{n}]" in text
    }
    shape = {"x[b,g": f"[b,g,{length}]", ",g]": f"[b,{length},g]"}
    own = next((s for part, s in shape.items() if part in text), f"[b,{length}]")
    return f"x: float32{own}\n{text}", used


def product_cases(generator: random.Random) -> tuple[str, dict[str, int]]:
    text = generator.choice(PRODUCTS).format("", generator.choice(CALLS[:6]))
    sizes = {n: generator.choice(SIZES) for n in "ijk"} | {"h": generator.choice(FEW)}
    return _kinds(generator, text, "ab"), {
        n: e for n, e in sizes.items() if f"{n}," in text or f"{n}]" in text
    }


def attention_cases(generator: random.Random) -> tuple[str, dict[str, int]]:
    sizes = {
        "h": generator.choice(FEW),
        "i": generator.choice(SIZES),
        "j": generator.choice(LONG),
        "d": generator.choice(SIZES),
        "e": generator.choice(SIZES),
    }
    bound = generator.choice(BOUNDS).format(j1=sizes["j"] + 1)
    if generator.randint(0, 4) == 0:
        sizes["j"] = 8 * generator.choice([1, 2, 3, 6, 20, 41])
        bound = generator.choice(["", f"n: int32[h](index < {sizes['j'] + 1})\nwhere j < n[h]\n"])
        pages = sizes["j"] // 8
        return PAGED.format(pages=pages, count=pages + 2, bound=bound, **sizes), sizes
    score = generator.choice(MARKS).format(s=DOT)
    text = generator.choice(ATTENTION).format(s=score)
    if ",e]" not in text:
        del sizes["e"]
    return bound + _kinds(generator, text, "qkv"), sizes


def map_cases(generator: random.Random) -> tuple[str, dict[str, int]]:
    text = generator.choice(MAPS).format("", generator.choice(CALLS))
    sizes = {"i": generator.choice(FEW), "j": generator.choice(SIZES)}
    text = _declared(text, {"t": f"int32[i](index < {sizes['i']})"})
    return f"x: {generator.choice(STORED)}[i,j]\n{text}", sizes


def case_of(number: int) -> Case:
    """The program of any kind that belongs to a number, with inputs at edges."""
    generator = random.Random(number)
    text, extents = generator.choice(KINDS)(generator)
    try:
        made = program(text, **extents)
    except InputError:  # such as bounds that leave nothing
        reject()
    names = [o.name for o in made.operands if o.drawn is None]
    chosen = generator.sample(names, min(len(names), generator.randint(1, 2)))
    weighted = "v" if "[h,i,e]" in text else ""
    fills = {n: generator.choice(SMALLER if n == weighted else sorted(FILLS)) for n in chosen}
    return text, extents, fills, generator.randint(0, 99)


KINDS = (row_cases, row_cases, window_cases, product_cases, attention_cases, map_cases)


def cases() -> st.SearchStrategy[Case]:
    """A program of any kind with inputs at edges; all numbers are as likely, for kinds are many."""
    return st.integers(0, 2**64 - 1).map(lambda n: case_of(n * 0x9E3779B97F4A7C15 % 2**64))


def _declared(text: str, tables: dict[str, str]) -> str:
    lines = [f"{name}: {kind}" for name, kind in tables.items() if f"{name}[" in text]
    return "\n".join([*lines, text])


def _kinds(generator: random.Random, text: str, names: str) -> str:
    kind = generator.choice(STORED)
    if kind == "float32":
        return text
    used = [n for n in names if f"{n}[" in text]
    return "\n".join([*(f"{n}: {kind}" for n in used), text])
