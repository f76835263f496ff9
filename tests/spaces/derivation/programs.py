"""Programs that chains of reductions are derived of, and inputs for them."""

import zlib

import numpy as np

from tilewright.spaces.language import Program, program

ATTENTION = """
q: float32[1, 4, {queries}, 8]; k: float32[1, {kv}, 33, 8]; v: float32[1, {kv}, 33, 2]
{where}
p[b,h,i,j] = softmax[j]({score})
y[b,h,i,e] = sum[j](p[b,h,i,j] * v[b,h//{group},j,e])
"""
DOT = "sum[d](q[b,h,i,d] * k[b,h//{group},j,d]) * 0.25"
CAUSAL = "where j <= i + {past}"
WINDOW = "where j <= i + {past} and i + {past} - j < 12"
ALIBI = DOT + " + slope[h] * (j - i)"
SOFTCAP = f"50 * tanh({DOT} / 50)"
ATTENTIONS = {  # name: (score, where, heads of keys, queries)
    "prefill_global": (DOT, "", 4, 33),
    "prefill_causal": (DOT, CAUSAL, 4, 33),
    "prefill_gqa": (DOT, CAUSAL, 2, 33),
    "prefill_alibi": (ALIBI, CAUSAL, 4, 33),
    "prefill_softcap": (SOFTCAP, CAUSAL, 2, 33),
    "prefill_window": (DOT, WINDOW, 2, 33),
    "decode_causal": (DOT, "", 4, 1),
    "decode_gqa": (DOT, "", 1, 1),
    "decode_alibi": (ALIBI, "", 4, 1),
    "decode_softcap": (SOFTCAP, "", 2, 1),
}
WITH_EMPTY_ROWS = {
    "attention": (DOT, "where j < i - 4", 2, 33),
    "attention_far": (DOT, "where j > i + 30", 4, 33),
}
MEAN = "mean[j](x[r,j])"
ROWS = {
    "softmax": "y[r,j] = softmax[j](x[r,j])",
    "logsumexp": "y[r] = logsumexp[j](x[r,j])",
    "cross_entropy": "label: int32[r](index < 40)\ny[r] = logsumexp[j](x[r,j]) - x[r,label[r]]",
    "layernorm": f"y[r,j] = (x[r,j] - {MEAN}) * rsqrt(var[j](x[r,j]) + 0.00001) * w[j] + c[j]",
    "rmsnorm": "y[r,j] = x[r,j] * rsqrt(mean[j](x[r,j] * x[r,j]) + 0.00001) * w[j]",
    "rmsnorm_matmul": "z[r,j] = x[r,j] * rsqrt(mean[j](x[r,j] * x[r,j]) + 0.00001) * w[j]\n"
    "y[r,m] = sum[j](z[r,j] * u[j,m])",
    "squares_about_weighted_mean": "a[r] = sum[j](softmax[j](x[r,j]) * x[r,j])\n"
    "y[r] = sum[j]((x[r,j] - a[r]) * (x[r,j] - a[r]))",
    "weighted_logits": "y[r,m] = sum[j](softmax[j](x[r,j]) * u[j,m])",
}
FURTHER_ROWS = {
    "softmax_base_2": "e[r,j] = exp2(x[r,j] - max[j](x[r,j]))\ny[r,j] = e[r,j] / sum[j](e[r,j])",
    "third_moment": f"m[r] = {MEAN}\ny[r] = sum[j]((x[r,j]-m[r]) * (x[r,j]-m[r]) * (x[r,j]-m[r]))",
    "mean_by_extent": "m[r] = sum[j](x[r,j]) / size(j)\n"
    "y[r] = sum[j]((x[r,j] - m[r]) * (x[r,j] - m[r]))",
    "largest_distance": f"y[r] = max[j](x[r,j] - {MEAN}) - min[j](x[r,j] - {MEAN})",
    "largest_scaled": "y[r] = max[j](x[r,j] * rsqrt(sum[j](x[r,j] * x[r,j])))",
    "place_of_largest": f"y[r] = argmax[j](x[r,j] - {MEAN})",
    "two_weights": "y[r] = sum[j]((x[r,j] + w[j]) * softmax[j](x[r,j]))",
    "selected": "y[r] = sum[j](select(j % 3 == 0, softmax[j](x[r,j]), 0) * w[j])",
    "causal_rows": "where j <= 9 * r - 5\ny[r] = var[j](x[r,j]) + logsumexp[j](x[r,j])",
    "norm_of_cube": "y[r] = sum[g,j](x[g,j] * softmax[g,j](x[g,j] + w[r]))",
}
REFUSED = {  # name: (program, the reduction refused, a word of the sentence)
    "element_times_result": (
        "y[r] = sum[j](exp(x[r,j] * max[j](x[r,j])))",
        "y",
        "multiplies a result by an element",
    ),
    "sign_unknown": ("y[r] = max[j](x[r,j] * sum[j](x[r,j]))", "y", "positive factors"),
    "tanh_of_distance": (f"y[r] = sum[j](tanh(x[r,j] - {MEAN}))", "y", "no correction is known"),
    "two_corrections": (
        "s[r] = sum[j](exp(x[r,j] - max[j](x[r,j])) + x[r,j] * max[j](x[r,j]))\ny[r] = s[r]",
        "s",
        "2 terms with different corrections",
    ),
    "product": (f"y[r] = prod[j](x[r,j] - {MEAN})", "y", "prod"),
    "other_row": (
        "m[r] = max[j](x[r,j])\ny[r] = sum[j](exp(x[r,j] - m[r // 2]))",
        "y",
        "the result of another row",
    ),
    "a_place": ("y[r] = sum[j](exp(x[r,j] - argmax[j](x[r,j]) * 0.1))", "y", "is a place"),
    "sum_between": (
        "m[r] = max[j](x[r,j])\ns[r,j] = sum[g](u[j,g] * (x[r,j] - m[r]))\ny[r] = sum[j](s[r,j])",
        "y",
        "not final yet",
    ),
}


def attention(name: str) -> Program:
    score, where, kv, queries = {**ATTENTIONS, **WITH_EMPTY_ROWS}[name]
    text = ATTENTION.replace("{score}", score).replace("{where}", where)
    text = text.format(group=4 // kv, past=33 - queries, kv=kv, queries=queries)
    return program(text, b=1, h=4, i=queries, j=33, d=8, e=2)


def rows(name: str, extent: int = 40) -> Program:
    texts = {**ROWS, **FURTHER_ROWS, **{n: text for n, (text, _, _) in REFUSED.items()}}
    extents = {"r": 5, "j": extent, "m": 3, "g": 3}
    text = texts[name].replace("40", str(extent))
    used = {a: n for a, n in extents.items() if f"{a}," in text or f"{a}]" in text}
    return program(f"x: float32[5, {extent}]\n{text}", **used)


def inputs(made: Program, offset: float = 0.0) -> dict[str, np.ndarray]:
    """Values in float64 that float32 has too, so that both can be computed of the same."""
    generator = np.random.default_rng(zlib.crc32(str(made).encode()))
    found = {}
    for operand in made.operands:
        if operand.drawn:
            found[operand.name] = generator.integers(0, operand.drawn.below, operand.shape)
        else:
            values = generator.normal(size=operand.shape) * 3 + offset * (operand.name == "x")
            found[operand.name] = values.astype(np.float32).astype(np.float64)
    return found


def random_chain(seed: int, dtype: str = "float64", extent: int = 11) -> Program:
    """Two to four dependent reductions of any summands, perhaps bounded; some have corrections."""
    g = np.random.default_rng(seed)
    results: list[str] = []

    def summand(depth: int) -> str:
        leaves = ["x[r,j]", "w[j]", "0.5", "c[r]", "x[r,j]", *(f"{name}[r]" for name in results)]
        if depth == 0:
            return str(g.choice(leaves))
        a, b = summand(depth - 1), summand(depth - 1)
        known = [f"{a} + {b}", f"({a}) - ({b})", f"({a}) * ({b})", f"({a}) * ({a})", f"exp({a})"]
        known += [f"select(j % 3 == 0, {a}, {b})", f"({a}) / (2 + exp({b}))", f"tanh({a})"]
        known += [f"exp(({a}) - ({b}))", f"({a}) * rsqrt(1 + ({b}) * ({b}))", leaves[-1]]
        return str(g.choice(known))

    lines = ["where j <= 3 * r + 2"] if g.random() < 0.4 else []
    for number in range(int(g.integers(2, 5))):
        reducer = str(g.choice(["sum", "sum", "sum", "max", "min"]))
        lines.append(f"t{number}[r] = {reducer}[j]({summand(2)})")
        results.append(f"t{number}")
        if g.random() < 0.3:
            lines.append(f"m{number}[r] = t{number}[r] / sum[j](1)")
            results[-1] = f"m{number}"
    lines.append(f"-> {', '.join(results)}")
    text = "\n".join(lines)
    return program(
        f"x: {dtype}[4, {extent}]\n{text}" if "x[" in text else text, dtype=dtype, r=4, j=extent
    )
