"""Sums over prefixes whose terms separate."""

from __future__ import annotations

import re

PRODUCT = "sum[d](q[h, t, d] * k[h, s, d])"
TEXTS = {
    "linear attention": f"y[h, t, e] = sum[s: s <= t]({PRODUCT} * v[h, s, e])",
    "retention": f"y[h, t, e] = sum[s: s <= t](exp(g[h] * (s - t)) * {PRODUCT} * v[h, s, e])",
    "state space": "y[h, t, e] = sum[s: s <= t]("
    "exp(l[h, t] - l[h, s]) * sum[d](c[t, d] * b[s, d]) * dt[h, s] * x[h, s, e])",
    "decays that are summed up": "l[h, t] = sum[s: s <= t](a[h, s])\n"
    f"y[h, t, e] = sum[s: s <= t](exp2(l[h, t] - l[h, s]) * {PRODUCT} * v[h, s, e])",
    "selective": "l[e, t, d] = sum[s: s <= t](dt[e, s] * a[e, d])\n"
    "y[e, t] = sum[s, d: s <= t]("
    "exp(l[e, t, d] - l[e, s, d]) * b[s, d] * c[t, d] * dt[e, s] * x[e, s])",
    "gated": "y[h, t, e] = sum[s, d: s <= t]("
    "exp(l[h, t, d] - l[h, s, d]) * q[h, t, d] * k[h, s, d] * v[h, s, e])",
    "gated twice": "y[h, t, e] = sum[s, d, n: s <= t]("
    "exp2(l[h, t, n] - l[h, s, n] + g[d] * (s - t))"
    " * q[h, t, d] * r[t, n] * k[h, s, d, n] * v[h, s, e])",
    "gated lanes": "y[h, t, e] = sum[s, d: s <= t]("
    "exp(l[h, t, e] - l[h, s, e]) * q[h, t, d] * k[h, s, d] * v[h, s, e])",
    "before, with maps": f"z[h, t, e] = sum[s: s < t](exp(l[h, t] - l[h, s]) * {PRODUCT}"
    " * v[h, s, e])\ny[h, t, e] = relu(z[h, t, e] * 2 + w[e]) * t",
    "behind": f"y[h, t, e] = sum[s: s > t](exp(g[h] * (t - s)) * {PRODUCT} * v[h, s, e])",
    "suffixes": f"y[h, t, e] = sum[s: s >= t]({PRODUCT} * v[h, s, e] / 3)",
    "averages": "y[t, e] = sum[s: s <= t](exp(g[e] * (s - t)) * x[s, e])",
    "two decays": f"y[h, t, e] = sum[s: s <= t]("
    f"exp(l[h, t] - l[h, s] + g[e] * (s - t)) * {PRODUCT} * v[h, s, e])",
    "gates of input": "l[h, t] = sum[s: s <= t](a[h, s])\n"
    f"y[h, t, e] = sum[s: s <= t](exp(l[h, t] - l[h, s] + i[h, s]) * {PRODUCT} * v[h, s, e])",
    "linear attention, in one sum": "y[h, t, e] = sum[s, d: s <= t]("
    "q[h, t, d] * k[h, s, d] * v[h, s, e])",
    "retention, in one sum": "y[h, t, e] = sum[s, d: s <= t]("
    "exp(g[h] * (s - t)) * q[h, t, d] * k[h, s, d] * v[h, s, e])",
    "two inner axes": "y[h, t, e] = sum[s, d, n: s <= t]("
    "q[h, t, d] * r[t, n] * k[h, s, d, n] * v[h, s, e])",
}
EXTENTS = {"h": 2, "t": 45, "s": 45, "d": 7, "e": 37, "n": 3}


def extents_of(name: str, **changes: int) -> dict[str, int]:
    """The extents of the axes of a text."""
    every = {**EXTENTS, **changes}
    return {axis: n for axis, n in every.items() if re.search(rf"\b{axis}\b", TEXTS[name])}
