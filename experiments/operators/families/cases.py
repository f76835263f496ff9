"""The operators and shapes that are compared, by family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from experiments.attention import texts
from experiments.operators.families import layers, recurrences, saved, segments, steps, windows
from experiments.operators.families.case import Case


def case(operator: str, dtype: str, **parameters: int | float | str) -> Case:
    """Return a case of some parameters."""
    return Case(operator, (*parameters.items(), ("dtype", dtype)))


TRANSPOSED = "y[j, i] = x[i, j]"
FUSED = "y[j, i] = relu(x[i, j] + b[i])"
CHANNELS_LAST = "y[n, h, w, c] = x[n, c, h, w]"
HEADS = "y[a, c, b, d] = x[a, b, c, d]"
CUMSUM = "y[r, i] = sum[j: j <= i](x[r, j])"
CUMSUM_DOWN = "y[i, r] = sum[j: j <= i](x[j, r])"
ROUTED = """g: float32[i]
p[i, j] = sum[d](x[i, d] * u[j, d])
y[i] = argmax[j](p[i, j])
m[i] = max[j](p[i, j])
g[i] = 1 / sum[j](exp(p[i, j] - m[i]))
-> y, g"""
LOSS = """l: int32[i](index < j)
y: float32[i]
z[i, j] = sum[d](x[i, d] * w[j, d])
y[i] = logsumexp[j](z[i, j]) - z[i, l[i]]"""
"""Programs without a name; their references are found by their text."""

LARGE = ((8192, 8192), (32768, 1024), (512, 131072))
SMALL = ((16384, 256), (4096, 1024), (64, 32768))
NORMS = ("softmax", "layernorm", "rmsnorm")
LAYER = {"n": 14336, "k": 4096}
"""Sizes of the feed-forward layer of Llama 3 with 8 billion weights."""
TRUNCATED = 1e-3
"""The error allowed of products of two sums that tensor cores add up, which truncate."""
NEARLY_EQUAL = 2e-3
"""The share of rows of which two elements may be so near to each other that either is the first."""
ROUTED_SHAPES = ((4096, 128, 4096), (16384, 64, 2048), (64, 128256, 2048))
"""Tokens, experts or words, and features."""
LOSS_SHAPES = ((4096, 128256, 4096), (16384, 50257, 768), (16, 128256, 4096), (4096, 128256, 2048))
"""Tokens, words and features."""
CPU_LOSS_SHAPES = ((256, 32000, 768), (64, 50257, 768), (1, 128256, 1024), (128, 32000, 4096))
ROUNDED = 1.5e-2
"""The error allowed of sums whose factors are rounded to bfloat16, in seven standard deviations."""


def loss(i: int, j: int, d: int, dtype: str) -> Case:
    """Return a linear layer with its cross-entropy."""
    words = case(LOSS, dtype, i=i, j=j, d=d)
    return replace(words, title=f"loss {i}x{j}x{d} {dtype}", slack=TRUNCATED)


def cumsum(text: str, r: int, i: int, dtype: str) -> Case:
    """Return the sums over the prefixes of ``r`` rows of ``i`` elements."""
    down = " down" * (text == CUMSUM_DOWN)
    return replace(case(text, dtype, r=r, i=i, j=i), title=f"cumsum{down} {r}x{i} {dtype}")


GPU_FAMILIES: Mapping[str, tuple[Case, ...]] = {
    "rows": (
        *(case(name, "bfloat16", r=r, c=c) for r, c in LARGE for name in NORMS),
        case("cross_entropy", "bfloat16", r=4096, c=32000),
        *(case(name, "float32", r=r, c=c) for r, c in LARGE for name in NORMS),
        *(case(name, "bfloat16", r=r, c=c) for r, c in SMALL for name in NORMS),
        case("logsumexp", "bfloat16", r=8192, c=8192),
        case("softmax", "bfloat16", r=64, c=262144),
        case("layernorm", "bfloat16", r=64, c=262144),
        *(case("layernorm", "float16", r=r, c=768) for r in (128, 1024)),  # of BERT-base
    ),
    "maps": (
        *(case(TRANSPOSED, kind, i=8192, j=8192) for kind in ("bfloat16", "float32")),
        case(FUSED, "bfloat16", i=8192, j=16384),
        case("rope", "bfloat16", b=8, t=4096, h=32, d=128),
        case("swiglu", "bfloat16", r=4096, c=11008),
        case("embedding", "bfloat16", t=16384, d=4096, words=32000),
        case(CHANNELS_LAST, "bfloat16", n=64, c=256, h=56, w=56),
        case(HEADS, "bfloat16", a=16, b=2048, c=32, d=128),
        case(TRANSPOSED, "float32", i=8191, j=8209),
        case(FUSED, "float32", i=4096, j=4096),
        case(CHANNELS_LAST, "float32", n=64, c=64, h=112, w=112),
        case(HEADS, "float32", a=16, b=2048, c=16, d=64),
        case("rope", "float32", b=4, t=2048, h=32, d=128),
        case("swiglu", "float32", r=4096, c=4096),
        case("embedding", "float32", t=16384, d=1024, words=32000),
        case(TRANSPOSED, "bfloat16", i=1024, j=1024),
    ),
    "scans": (
        cumsum(CUMSUM, 32768, 4096, "float32"),
        cumsum(CUMSUM, 32768, 4096, "bfloat16"),
        cumsum(CUMSUM, 8, 1 << 22, "float32"),
        cumsum(CUMSUM_DOWN, 4096, 32768, "float32"),
    ),
    "several": (
        replace(case("gated_matmul", "bfloat16", m=512, **LAYER), slack=TRUNCATED),
        replace(case("gated_matmul", "bfloat16", m=4096, **LAYER), slack=TRUNCATED),
        replace(case("rmsnorm_matmul", "bfloat16", m=512, **LAYER), slack=ROUNDED),
        replace(case("gated_matmul", "bfloat16", m=16, **LAYER), slack=TRUNCATED),
        replace(case("rmsnorm_matmul", "bfloat16", m=4096, **LAYER), slack=ROUNDED),
        replace(case("rmsnorm_matmul", "bfloat16", m=16, **LAYER), slack=ROUNDED),
    ),
    "routing": tuple(
        replace(
            case(ROUTED, "bfloat16", i=i, j=j, d=d),
            title=f"routing {i}x{j}x{d} bfloat16",
            slack=TRUNCATED,
            elsewhere=NEARLY_EQUAL,
        )
        for i, j, d in ROUTED_SHAPES
    ),
    "losses": tuple(loss(*shape, "bfloat16") for shape in LOSS_SHAPES),
}
"""Families in the order in which they are measured, the most telling first."""

ATTENTIONS: tuple[dict[str, int], ...] = (
    {"h": 12, "i": 512, "j": 512, "d": 64},
    {"h": 4, "i": 3072, "j": 3072, "d": 64},
    {"h": 8, "i": 4096, "j": 4096, "d": 128},
)
MASKS: tuple[dict[str, int | str], ...] = (
    {},
    {"mask": "causal"},
    {"mask": "causal", "window": 256},
)
ONE_HEAD = {"h": 16, "i": 1, "j": 32768, "d": 128, "kv": 1}
"""One head of keys for all queries."""
DECODE = {"h": 32, "i": 1, "j": 32768, "d": 128, "kv": 8}

CPU_SHAPES = ((4096, 1024), (512, 8192), (32, 131072))

CPU_FAMILIES: Mapping[str, tuple[Case, ...]] = {
    "rows": tuple(
        case(name, "float32", r=r, c=c)
        for name in (*NORMS, "logsumexp", "cross_entropy")
        for r, c in CPU_SHAPES
    ),
    "maps": (
        case(TRANSPOSED, "float32", i=4096, j=4096),
        case(FUSED, "float32", i=4096, j=4096),
        case(TRANSPOSED, "bfloat16", i=4096, j=4096),
        case(CHANNELS_LAST, "float32", n=8, c=64, h=112, w=112),
        case(HEADS, "float32", a=4, b=1024, c=16, d=64),
        case("rope", "float32", b=2, t=1024, h=16, d=128),
        *(case("swiglu", "float32", r=r, c=c) for r, c in CPU_SHAPES),
        case("embedding", "float32", t=16384, d=1024, words=32000),
        case(TRANSPOSED, "float32", i=4099, j=4093),
        case(TRANSPOSED, "float32", i=512, j=512),
        case(TRANSPOSED, "float32", i=96, j=64),
    ),
    "losses": tuple(loss(*shape, "float32") for shape in CPU_LOSS_SHAPES),
    "attention": (
        *(case("attention", "float32", b=1, **s, **m) for s in ATTENTIONS for m in MASKS),
        case("attention", "float32", b=1, **DECODE),
        case("attention", "float32", b=1, **ONE_HEAD),
    ),
    "texts": tuple(
        replace(case("attention", "float32", **operator.named(length)), title=f"{name} {length}")
        for name, operator in texts.OPERATORS.items()
        for length in texts.lengths_of(operator)
    ),
}

FAMILIES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "cpu": {
        **CPU_FAMILIES,
        "kept": windows.CPU_CASES,
        "convolutions": layers.CASES,
        "grouped": segments.CASES,
    },
    "cuda": {
        **GPU_FAMILIES,
        "kept": windows.GPU_CASES,
        "recurrences": recurrences.CASES,
        "saved": saved.CASES,
        "steps": steps.CASES,
    },
}
"""The families by the kind of target."""
