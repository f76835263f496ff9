"""Edge inputs: what there is of them for a program, and what is right of each."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.edges import with_edges
from tilewright.measure.drawing.further_draws import count_further_draws, further_draws
from tilewright.measure.drawing.programs import ProgramDraw
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of

WORKLOADS = [
    "softmax r=40 c=100",
    "layernorm r=40 c=100 dtype=float16",
    "cross_entropy r=40 c=100",
    "argmax shape=40x30 over=1 dtype=bfloat16",
    "embedding t=40 d=30 words=50",
    "attention b=1 h=2 i=20 j=40 d=8 mask=causal dtype=bfloat16",
    '"y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 0.25 + m[i,j]) * v[j,e])" '
    "i=30 j=40 d=8 e=8",
    '"n: int32[b](index < 71); where j < n[b]; y[b,e] = sum[j](softmax[j]('
    'sum[d](q[b,d] * k[b,j,d]) * 0.2) * v[b,j,e])" b=6 j=70 d=8 e=8',
    '"s[r] = max[c](z[r,c]); y[r] = sum[c](x[r,c] * s[r])" r=40 c=64',
    '"y[i,j] = sum[k](a[i,k] * s[i] * b[k,j])" i=30 j=40 k=50',
    '"y[r] = sum[c](select(x[r,c] > 0.5, 1, x[r,c] * z[r,c]))" r=40 c=64',
    "max_pool2d n=2 c=8 h=10 w=10 r=3 stride=2 padding=1",
    "conv2d n=4 c=8 h=10 w=10 o=12 r=3 s=3 padding=1 layout=NHWC",
    "grouped_matmul t=70 n=24 k=20 experts=5",
    '"y[o,p] = relu(sum[c](w[o,c] * x[c,p]) * s[o] + t[o])" o=40 p=30 c=50',
]
PRODUCTS = [
    "matmul m=30 n=40 k=50",
    'matmul m=30 n=40 k=50 dtype=float16 epilogue="relu(x + bias[n]) * scale[m]"',
    'matmul m=30 n=40 k=50 dtype=float16 accumulator=float16 epilogue="relu(x + bias[n])"',
    "matmul m=30 n=40 k=600 dtype=float16 accumulator=float16 out=float32",
    "matmul m=30 n=40 k=50 dtype=float8_e4m3fn b=col out=bfloat16",
    "matmul m=30 n=40 k=50 dtype=int8 b=col",
    "matmul m=3 n=40 k=300 dtype=bfloat16",
    "bmm batch=4 m=5 n=6 k=7",
    'matmul m=3 n=40 k=192 b=col epilogue="relu(x * s[n] + c[m])"',
    'matmul m=30 n=40 k=50 epilogue="min(x * s[n] - c[n], 6)"',
]


@pytest.mark.parametrize("text", WORKLOADS + PRODUCTS)
def test_what_is_right_of_an_edge_is_what_float64_makes_of_it(text):
    work = workload(text)
    draw = one_draw(work, 0)
    seen = set()
    for edge in further_draws(draw):
        seen.add(edge.name)
        exact = evaluate(work.program, edge.inputs)
        for output in work.outputs:
            low, high = edge.allowed()[output.name]
            with np.errstate(all="ignore"):
                found = output.element.cast(exact[output.name])
            assert agrees(found, low, high).all()
            anything = (low == -np.inf) & (high == np.inf)
            assert np.mean(anything) < 0.9, edge.name
    assert seen - {""}
    assert len(list(further_draws(draw))) == count_further_draws(work)


@pytest.mark.parametrize("text", [text for text in PRODUCTS if "int8" not in text])
def test_products_have_values_of_every_kind(text):
    """Of outputs some must be NaN, others infinite, and many finite."""
    work = workload(text)
    nan = infinite = finite = 0
    for edge in further_draws(one_draw(work, 0)):
        for low, high in edge.allowed().values():
            nan += np.isnan(low).sum()
            infinite += (np.isinf(low) & (low == high)).sum()
            finite += (np.isfinite(low) & np.isfinite(high)).sum()
    assert nan > 0
    assert finite > work.outputs[0].size / 8
    assert infinite > 0 or "float8_e4m3fn" in text  # which has no infinity


def test_zero_times_infinity_is_drawn():
    work = workload(PRODUCTS[0])
    (edge,) = further_draws(one_draw(work, 0))
    left, right = (np.asarray(edge.inputs[name], np.float64) for name in "AB")
    with np.errstate(invalid="ignore"):
        terms = left[:, :, None] * right[None]
    defined = ~np.isnan(left).any(axis=1)[:, None] & ~np.isnan(right).any(axis=0)
    assert (np.isnan(terms).any(axis=1) & defined).any()


def test_what_rows_see_by_a_table_and_weigh_is_infinite_and_nan():
    work = workload(
        "o: int32[i](index < 3); g: int32[j](index < 3); where o[i] == g[j]; "
        "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e])", i=20, j=40, d=8, e=16
    )  # fmt: skip
    drawn = [edge.inputs["v"] for edge in further_draws(one_draw(work, 0))]
    for value in (np.isnan, np.isposinf, np.isneginf):
        assert any(value(v).any() for v in drawn)


def test_fast_kernels_are_judged_by_what_their_bounds_are_written_for():
    """Winograd's error is relative to the largest element of a tile, so no row has an outlier."""
    work = workload("conv2d n=8 c=8 h=10 w=10 o=12 r=3 s=3 padding=1 layout=NHWC")
    draws = list(further_draws(one_draw(work, 0), numerics=Numerics.FAST))
    assert draws
    for draw in draws:
        for values in draw.inputs.values():
            for one in values.reshape(len(values), -1).astype(np.float64):
                assert np.isfinite(one).all()
                assert abs(one).max() <= 1e3 * abs(one).std() or one.std() <= 1e-6 * one.mean()


def of_float16(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """What is allowed of sums in float16 of 64 products of two numbers."""
    work = workload("matmul m=2 n=2 k=64 dtype=float16 accumulator=float16 out=float32")
    inputs = {"A": np.full((2, 64), a, np.float16), "B": np.full((64, 2), b, np.float16)}
    return ProgramDraw(work, inputs).allowed()["C"]


def test_sums_in_float16_overflow_where_float16_does():
    """Some kernels add parts in float32, which have more room."""
    low, high = of_float16(100, 100)  # 640,000
    assert ((low > 6e5) & (low < 640_000) & (high == np.inf)).all()
    low, high = of_float16(30, 30)  # 57,600
    assert ((low > 5e4) & (high < 65504)).all()


def test_small_sums_in_float16_are_subnormal_numbers():
    low, high = of_float16(2.0**-12, 2.0**-12)  # 2**-18
    assert ((low > 0) & (high < 2.0**-17)).all()


def test_the_same_edges_come_of_the_same_draw():
    work = workload(WORKLOADS[0])
    one, other = (list(with_edges(one_draw(work, 5))) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        assert a.name == b.name
        assert np.array_equal(a.inputs["x"], b.inputs["x"], equal_nan=True)


def test_what_softmax_weighs_is_huge_but_stays_finite():
    """Kernels divide by the sum of weights in the end, so the sum without that is finite."""
    work = workload("attention b=2 h=4 i=20 j=40 d=8")
    most = max(
        np.nanmax(np.where(np.isinf(v := edge.inputs["v"]), 0, abs(v)))
        for edge in further_draws(one_draw(work, 0))
    )
    assert 1e35 < most < np.finfo(np.float32).max / 40


def test_what_an_exponential_is_of_is_not_huge():
    """Scores of a gradient overflow in float32 and not in float64, where their exponentials are
    infinite: right kernels had other signs, and were found wrong."""
    text = "attention b=1 h=2 i=20 j=40 d=8 mask=causal"
    work = workload_of(gradient(text, "q,k,v", saved="y,lse"))
    most = {"q": 0.0, "k": 0.0, "v": 0.0}
    for edge in further_draws(one_draw(work, 0)):
        for name in most:
            values = abs(edge.inputs[name])
            most[name] = max(most[name], values[np.isfinite(values)].max())
    assert max(most["q"], most["k"]) < 1e8
    assert most["v"] > 1e35


@pytest.mark.parametrize(
    ("text", "infinite"),
    [
        ("y[m, n] = sum[k](a[m, k] * (q[n, k] - 8) * s[n, k // 64])", False),
        ("y[m, n] = sum[k](a[m, k] * (q[n, k] - 8)) * s[n]", True),
    ],
)
def test_scales_are_infinite_where_they_multiply_a_finished_sum(text, infinite):
    w = workload(f"q: uint4[n, k](packed); {text}", m=64, n=128, k=128)
    drawn = [edge.inputs["s"] for edge in with_edges(one_draw(w, 0))]
    assert any(np.isinf(each).any() for each in drawn) is infinite
    assert any(np.isnan(each).any() for each in drawn)
