"""Random programs at the edges, on the emulator: as the float64 program says, exactly where that is
NaN or infinite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.measure.cuda.edges import Inputs, complaints, kernels
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

INF = np.inf
ROWS = {
    "softmax": "y[r,c] = softmax[c](x[r,c])",
    "scaled": "y[r,c] = softmax[c](x[r,c] * 3e9)",
    "logsumexp": "y[r] = logsumexp[c](x[r,c])",
    "loss": "l: int32[r](index < C)\ny[r] = logsumexp[c](x[r,c]) - x[r,l[r]]",
    "best": "a[r] = argmax[c](x[r,c])\nb[r] = argmin[c](x[r,c])\n-> a, b",
    "extremes": "a[r] = max[c](x[r,c])\nb[r] = min[c](x[r,c])\n-> a, b",
    "sum": "y[r] = sum[c](x[r,c])",
    "product": "y[r] = prod[c](x[r,c])",
    "layernorm": "m[r] = mean[c](x[r,c])\nv[r] = var[c](x[r,c])\n"
    "y[r,c] = (x[r,c] - m[r]) * rsqrt(v[r] + 1e-5) * g[c] + b[c]",
    "rmsnorm": "y[r,c] = x[r,c] * rsqrt(mean[c](x[r,c] * x[r,c]) + 1e-6) * g[c]",
}
OVERFLOWS = ("scaled", "sum", "product", "layernorm", "rmsnorm")
"""What squares, adds up, or multiplies: float32 has no such results of huge numbers."""
EDGES = (
    "few", "nothing", "least", "nan", "infinite", "huge", "tiny", "equal", "outlier", "plain",
)  # fmt: skip
SEEN = {
    "all": "",
    "lengths": "n: int32[b](index < {above})\nwhere j < n[b]\n",
    "causal": "where j <= i\n",
    "window": "where j <= i + 9, j > i - 7\n",
    "segments": "s: int32[j](index < 3)\no: int32[i](index < 3)\nwhere s[j] == o[i]\n",
    "pages": "table: int32[b,{each}](index < {pages})\nn: int32[b](index < {above})\n"
    "where j < n[b]\n",
}
ADDED = {"none": 0.0, "-inf": -INF, "least": -3.4028235e38, "far": -1e37}


@dataclass(frozen=True)
class Case:
    """A program, inputs, and the seed of its schedules."""

    work: Workload
    inputs: Inputs
    seed: int


def drawn(work: Workload, rng: np.random.Generator, **known: np.ndarray) -> Inputs:
    """Operands, those that are known and small whole numbers for others, rounded to their types."""
    found = {}
    for o in work.program.operands:
        value = known.get(o.name, rng.integers(-2, 3, o.shape))
        found[o.name] = o.element.cast(value)
    return found


@st.composite
def rows(draw: st.DrawFn) -> Case:
    """Rows of one kind of edge each."""
    name = draw(st.sampled_from(list(ROWS)))
    r, c = draw(st.integers(1, 6)), draw(st.sampled_from([1, 7, 64, 130, 517, 1024]))
    dtype = draw(st.sampled_from(["float32", "float16", "bfloat16"]))
    seed = draw(st.integers(0, 2**16))
    work = workload(ROWS[name].replace("C", str(c)), r=r, c=c, dtype=dtype)
    rng = np.random.default_rng(seed)
    kinds = draw(st.lists(st.sampled_from(EDGES), min_size=r, max_size=r))
    x = np.stack([_row(kind, c, rng, name in OVERFLOWS) for kind in kinds])
    label = rng.integers(0, c, r)
    return Case(work, drawn(work, rng, x=x, l=label), seed)


def _row(kind: str, c: int, rng: np.random.Generator, small: bool) -> np.ndarray:
    row = rng.normal(size=c)
    at = rng.integers(0, c, 3)
    if kind == "few":
        row[np.setdiff1d(np.arange(c), at)] = -INF
    elif kind == "nothing":
        row[:] = -INF
    elif kind == "least" and not small:
        row[:] = -3.4028235e38
        row[at[0]] = rng.choice([0.0, -3.4028235e38])
    elif kind in ("nan", "infinite"):
        row[at[0]] = np.nan if kind == "nan" else rng.choice([INF, -INF])
    elif kind == "huge" and not small:
        row *= 1e37
    elif kind == "tiny":
        row *= 1e-30
    elif kind == "equal":
        row[:] = row[0]
    elif kind == "outlier":
        row[at[0]] = 300.0
    return row


@st.composite
def attention(draw: st.DrawFn) -> Case:
    """Attention with hidden rubbish, visible infinities, masks that are added, scores of any
    size."""
    seen, added = draw(st.sampled_from(list(SEEN))), draw(st.sampled_from(list(ADDED)))
    scale = draw(st.sampled_from([0.25, 0.25, 30.0, 3e9]))
    b, h, i = 2, draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 5, 40]))
    j, d = draw(st.sampled_from([16, 48, 80, 144])), draw(st.sampled_from([16, 32, 64]))
    dtype = draw(st.sampled_from(["float16", "bfloat16"]))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    pages = b * j // 16 + 1
    paged = seen == "pages"
    place = "table[b,j//16],j%16,h" if paged else "b,h,j"
    k, v = f"k[{place},d]", f"v[{place},e]"
    mask = "" if added == "none" else " + m[i,j]"
    text = ("" if added == "none" else "m: float32\n") + SEEN[seen].format(
        above=j + 1, pages=pages, each=j // 16
    )
    score = f"sum[d](q[b,h,i,d] * {k}) * {scale!r}{mask}"
    sizes = {"b": b, "h": h, "i": i, "j": j, "d": d, "e": d}
    work = workload(f"{text}y[b,h,i,e] = sum[j](softmax[j]({score}) * {v})", **sizes, dtype=dtype)
    shape = {o.name: o.shape for o in work.program.operands}
    lengths = rng.integers(1, j + 1, b)
    known = {
        "n": lengths, "q": rng.integers(-2, 3, shape["q"]), "v": rng.normal(size=shape["v"]),
        "k": rng.integers(-2, 3, shape["k"]).astype(float), "s": rng.integers(0, 3, j),
        "o": rng.integers(0, 3, i),
    }  # fmt: skip
    rubbish = draw(st.sampled_from([np.nan, INF, -INF]))
    if paged:
        known["table"] = rng.permutation(pages)[: b * j // 16].reshape(b, -1)
    for batch, n in enumerate(lengths if seen in ("lengths", "pages") else ()):
        for key in range(n, j):
            place = (known["table"][batch, key // 16], key % 16) if paged else (batch, ..., key)
            known["v"][(*place, slice(None))] = known["k"][(*place, slice(None))] = rubbish
    if draw(st.booleans()) and (scale < 1 or np.isnan(rubbish)):  # of an infinity times almost zero
        known["v"].reshape(-1)[rng.integers(0, known["v"].size, 3)] = rubbish
    if added != "none":
        known["m"] = np.where(rng.random((i, j)) < 0.5, ADDED[added], 0.0)
        known["m"][rng.integers(0, i)] = ADDED[added]
    return Case(work, drawn(work, rng, **known), seed)


def wrong(emulator, cases: list[Case], count: int) -> list[str]:
    """What is wrong with some kernels of each."""
    made = [(case, kernels(case.work, count, case.seed)) for case in cases]
    emulator.build([kernel for _, found in made for kernel in found])
    return [
        f"{case.work}, seed {case.seed}: {complaint}"
        for case, found in made
        for complaint in complaints(emulator, case.work, found, [case.inputs])
    ]


LOOSE = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@pytest.mark.parametrize("cases", [rows, attention])
def test_random_programs_are_right_at_the_edges(emulator, cases):
    @settings(max_examples=1, **LOOSE)
    @given(st.lists(cases(), min_size=8, max_size=8))
    def check(found: list[Case]) -> None:
        assert wrong(emulator, found, 2) == []

    check()


@pytest.mark.slow
@pytest.mark.parametrize("cases", [rows, attention])
def test_many_random_programs_are_right_at_the_edges(emulator, cases):
    @settings(max_examples=60, **LOOSE)
    @given(st.lists(cases(), min_size=8, max_size=8))
    def check(found: list[Case]) -> None:
        assert wrong(emulator, found, 3) == []

    check()
