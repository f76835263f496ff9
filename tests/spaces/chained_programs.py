"""Programs of a product, a chain over its columns and products of that: attention and its like."""

from __future__ import annotations

import random
import re

from tilewright.spaces.language import Program, program

SCORE = "sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * 0.2"
VALUE = "v[b,h // 2,j,e]"
PLAIN = f"y[b,h,i,e] = sum[j](softmax[j]({SCORE}) * {VALUE})"
EXTENTS = {"b": 2, "h": 4, "i": 45, "j": 53, "d": 24, "e": 20}

FORMS = {
    "grouped heads": PLAIN,
    "causal": f"where j <= i + 8\n{PLAIN}",
    "window at both ends": f"where j - i < 5\nwhere i - j < 5\n{PLAIN}",
    "prefix lengths": f"n: int32[b](index < 54)\nwhere j < n[b]\n{PLAIN}",
    "lengths and causal": f"n: int32[b](index < 54)\nwhere j < n[b]\nwhere j <= i + 8\n{PLAIN}",
    "documents": "own: int32[b,i](index < 3)\nother: int32[b,j](index < 3)\n"
    f"where own[b,i] == other[b,j]\n{PLAIN}",
    "bound by a number of floats": f"where m[i] * 50 > j - 30\n{PLAIN}",
    "strided": f"where (i + 34 - j) % 3 == 0\n{PLAIN}",
    "bias": f"y[b,h,i,e] = sum[j](softmax[j]({SCORE} + bias[h,i,j]) * {VALUE})",
    "alibi": "where j <= i\n"
    f"y[b,h,i,e] = sum[j](softmax[j]({SCORE} + slope[h] * (j - i)) * {VALUE})",
    "softcap": f"y[b,h,i,e] = sum[j](softmax[j](3 * tanh({SCORE} / 3)) * {VALUE})",
    "log of the sum": f"p[b,h,i,j] = {SCORE}\n"
    f"y[b,h,i,e] = sum[j](softmax[j](p[b,h,i,j]) * {VALUE})\n"
    "l[b,h,i] = logsumexp[j](p[b,h,i,j])\n-> y, l",
    "rows without a key": "where j < i - 4\np[b,h,i,j] = "
    f"{SCORE}\ny[b,h,i,e] = sum[j](softmax[j](p[b,h,i,j]) * {VALUE})\n"
    "l[b,h,i] = logsumexp[j](p[b,h,i,j])\n-> y, l",
    "sinks": f"p[b,h,i,j] = {SCORE}\nm[b,h,i] = max[j](p[b,h,i,j])\n"
    "z[b,h,i] = sum[j](exp(p[b,h,i,j] - m[b,h,i])) + exp(sink[h] - m[b,h,i])\n"
    f"y[b,h,i,e] = sum[j](exp(p[b,h,i,j] - m[b,h,i]) / z[b,h,i] * {VALUE})",
    "one head of keys": "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,j,d])) * v[b,j,e])",
    "values of each head": f"y[b,h,i,e] = sum[j](softmax[j]({SCORE}) * v[b,h,j,e])",
    "latent": "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,j,d])) * k[b,j,e])",
    "gate": f"y[b,h,i,e] = sum[j](softmax[j]({SCORE}) * {VALUE}) * sigmoid(g[b,h,i,e])",
    "other order": f"y: float32(order=(0, 1, 3, 2))\n{PLAIN}",
    "heads behind tokens": "y[b,i,h,e] = sum[j](softmax[j](sum[d](q[b,i,h,d] * k[b,j,h // 2,d])) "
    "* v[b,j,h // 2,e])",
    "rotated queries": "t[b,h,i,d] = q[b,h,i,d] * c[i,d] + q[b,h,i,(d + 12) % 24] * s[i,d]\n"
    f"y[b,h,i,e] = sum[j](softmax[j](sum[d](t[b,h,i,d] * k[b,h // 2,j,d])) * {VALUE})",
    "rotated keys": "t[b,h,j,d] = k[b,h,j,d] * c[j,d] + k[b,h,j,(d + 12) % 24] * s[j,d]\n"
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * t[b,h,j,d])) * v[b,h,j,e])",
    "pages": "t: int32[b,4](index < 9)\nk: float32[9,16,2,24]\nv: float32[9,16,2,20]\n"
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[t[b,j // 16],j % 16,h // 2,d])) "
    "* v[t[b,j // 16],j % 16,h // 2,e])",
    "keys in 8 bits": "k: int8[b,2,j,d]\nv: int8[b,2,j,e]\n"
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * scale[b,j] * 0.02) "
    "* u[b,j] * v[b,h // 2,j,e])",
    "half precision": "q: bfloat16\nk: bfloat16\nv: bfloat16\ny: bfloat16\n" + PLAIN,
    "two values": f"p[b,h,i,j] = softmax[j]({SCORE})\ny[b,h,i,e] = sum[j](p[b,h,i,j] * {VALUE})\n"
    "z[b,h,i,e] = sum[j](p[b,h,i,j] * u[b,h // 2,j,e])\n-> y, z",
    "two weights": f"p[b,h,i,j] = {SCORE}\nm[b,h,i] = max[j](p[b,h,i,j])\n"
    f"y[b,h,i,e] = sum[j](exp(p[b,h,i,j] - m[b,h,i]) * {VALUE})\n"
    "z[b,h,i,e] = sum[j](exp2(p[b,h,i,j] - m[b,h,i]) * u[b,h // 2,j,e])\n-> y, z",
    "no chain": f"y[b,h,i,e] = sum[j](sigmoid({SCORE}) * {VALUE})",
    "softmax of a product": "y[i,e] = sum[j](softmax[j](sum[d](x[i,d] * u[d,j])) * v[j,e])",
    "loss over a vocabulary": "l: int32[i](index < 53)\nz[i,j] = sum[d](x[i,d] * w[j,d])\n"
    "y[i] = logsumexp[j](z[i,j]) - sum[j](select(j == l[i], z[i,j], 0))",
    "loss by a read place": "l: int32[i](index < 53)\nz[i,j] = sum[d](x[i,d] * w[j,d])\n"
    "y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]",
    "moments of a product": "z[i,j] = sum[d](x[i,d] * w[d,j])\nm[i] = mean[j](z[i,j])\n"
    "v[i] = var[j](z[i,j])\n-> m, v",
    "a factor of each score": "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d] "
    f"* s[h,i] * u[b,j] * 0.2)) * {VALUE})",
    "moments of what counts": "where j <= i + 8\nz[i,j] = sum[d](x[i,d] * w[d,j])\n"
    "m[i] = mean[j](z[i,j])\nv[i] = var[j](z[i,j])\n-> m, v",
    "two products": "y[i,e] = sum[j](sum[d](x[i,d] * u[d,j]) * v[j,e])",
    "quotients that are no indices": f"where (j - i) % -4 != -1\nwhere j // (i + 1) < 9\n{PLAIN}",
}


def made(text: str, dtype: str = "float32", **changes: int) -> Program:
    """The program of a text, with the extents that it has axes for."""
    extents = EXTENTS | changes
    used = {a: n for a, n in extents.items() if re.search(rf"[\[,]{a}[\],]", text)}
    return program(text, dtype=dtype, **used)


def form(name: str, dtype: str = "float32", **changes: int) -> Program:
    """One of :data:`FORMS`, its floats of ``dtype`` and its labels among the keys there are."""
    text = FORMS[name].replace("index < 53", f"index < {changes.get('j', EXTENTS['j'])}")
    text = text if dtype == "float32" else re.sub("float32(?=[\\[(])", dtype, text)
    return made(text, dtype, **changes)


def random_form(seed: int, dtype: str = "float32", **changes: int) -> Program:
    """A score, masks, a normalisation and extents at random, some of them as ``changes`` say."""
    draw = random.Random(seed)
    score = f"sum[d](q[b,h,i,d] * k[b,{draw.choice(['h', 'h // 2', 'h // 4'])},j,d]) * 0.2"
    for further in draw.sample(
        ["bias[h,i,j]", "slope[h] * (j - i)", "row[b,i]", "abs(i - j) * -0.1", "column[j]"], 2
    ):
        score = draw.choice([score, f"{score} + {further}"])
    score = draw.choice([score, score, f"5 * tanh(({score}) / 5)", f"max({score}, -2)"])
    masks = ["where j <= i + 5", "where i - j < 7", "where j < n[b]", "where (i + j) % 3 != 1",
             "where own[i] == other[j]", "where 2 * j >= i - 3"]  # fmt: skip
    chosen = draw.sample(masks, draw.choice([0, 1, 1, 2]))
    declared = "n: int32[b](index < 12)\n" if any("n[b]" in m for m in chosen) else ""
    if any("own" in m for m in chosen):
        declared += "own: int32[i](index < 3)\nother: int32[j](index < 3)\n"
    weight = draw.choice(
        ["softmax[j](p[b,h,i,j])", "softmax[j](p[b,h,i,j])", "sigmoid(p[b,h,i,j])"]
    )
    value = f"v[b,{draw.choice(['h', 'h // 2'])},j,e]"
    text = f"p[b,h,i,j] = {score}\ny[b,h,i,e] = sum[j]({weight} * {value})"
    if draw.random() < 0.4:
        text += "\nl[b,h,i] = logsumexp[j](p[b,h,i,j])\n-> y, l"
    lines = "".join(f"{mask}\n" for mask in chosen)
    extents = {a: draw.choice([1, 2, 7, 16, 17, 31]) for a in "ide"} | {"b": draw.choice([1, 2])}
    extents |= {"j": draw.choice([1, 13, 17, 64, 97])} | changes
    return made(declared + lines + text, dtype, **extents)
