"""The chained template of a GPU: its space, its rules, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.chained_programs import FORMS, made
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.testing.template import TemplateContract
from tilewright.spaces.workloads.workload import Workload

H200, A100 = cuda_target("sm_90a"), cuda_target("sm_80")
HALF = {"dtype": "float16"}
E4M3 = "float8_e4m3fn"
PREFILL = workload("attention", b=1, h=8, i=2048, j=2048, d=128, mask="causal", **HALF)
DECODE = workload("attention", b=4, h=32, kv=8, i=1, j=4096, d=128, dtype="bfloat16")
LATENT = workload(
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,j,d])) * k[b,j,e])",
    b=1, h=16, i=1, j=512, d=576, e=512, dtype="bfloat16",
)  # fmt: skip
LOSS = workload(
    "l: int32[i](index < 500)\nz[i,j] = sum[d](x[i,d] * w[j,d])\n"
    "y[i] = logsumexp[j](z[i,j]) - sum[j](select(j == l[i], z[i,j], 0))",
    i=96, j=500, d=64, **HALF,
)  # fmt: skip


class TestCudaChained(TemplateContract):
    template = CudaChained

    def served(self) -> list[tuple[Workload, Target]]:
        return [(PREFILL, H200), (DECODE, A100), (LATENT, H200), (LOSS, H200), (SHORT, H200)]

    def refused(self) -> list[tuple[Workload, Target]]:
        softmax = workload("softmax", r=4, c=8, **HALF)
        single = workload("attention", b=1, h=1, i=8, j=8, d=8)
        return [
            (softmax, H200),
            (single, H200),
            (workload("matmul", m=8, n=8, k=8), H200),
        ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (FORMS["grouped heads"], "no factor, or several kinds, of float16 or bfloat16"),
        ("k: bfloat16\n" + FORMS["grouped heads"].replace("sum[j]", "sum[j]", 1), "kinds"),
        ("q: float32\n" + FORMS["grouped heads"], "scores are not of float8 arrays alone"),
        (FORMS["no chain"], "may leave the range of float16"),
    ],
)
def test_what_products_cannot_multiply_is_refused_in_words(text, why):
    dtypes = {
        "no factor, or several kinds, of float16 or bfloat16": "float32",
        "scores are not of float8 arrays alone": E4M3,
    }
    dtype = dtypes.get(why, "float16")
    extents = {"b": 1, "h": 2, "i": 4, "j": 5, "d": 6, "e": 7}
    found = CudaChained.why_not(workload(text, **extents, dtype=dtype), H200)
    assert found is not None
    assert why in found


SHORT = workload("attention", b=1, h=8, kv=2, i=512, j=512, d=128, dtype=E4M3)
SCORE = "sum[d](q[b,h,i,d] * k[b,h // 2,j,d])"
SOFT = f"y[b,h,i,e] = sum[j](softmax[j]({SCORE}) * "


@pytest.mark.parametrize(
    ("text", "scores", "weights"),
    [
        (f"{SOFT}v[b,h // 2,j,e])", E4M3, (E4M3, "bfloat16")),
        (f"{SOFT}vs[h] * v[b,h // 2,j,e])", E4M3, (E4M3, "bfloat16")),
        (f"{SOFT}u[b,j] * v[b,h // 2,j,e])", E4M3, ("bfloat16",)),
        (f"{SOFT}v[b,h // 2,j,e] * u[j,e])", E4M3, ("bfloat16",)),
        (f"y[b,h,i,e] = sum[j](sigmoid({SCORE}) * v[b,h // 2,j,e])", E4M3, ("bfloat16",)),
        (f"q: float8_e5m2\n{SOFT}v[b,h // 2,j,e])", "bfloat16", (E4M3, "bfloat16")),
        (f"q: bfloat16\n{SOFT}v[b,h // 2,j,e])", "bfloat16", ("bfloat16",)),
    ],
)
def test_products_of_float8_arrays_are_multiplied_in_float8(text, scores, weights):
    """Weights as far as they are at most one."""
    work = workload(text, b=1, h=4, i=64, j=64, d=32, e=32, dtype=E4M3)
    sizes = CudaChained(work, H200).sizes
    assert (sizes.kinds.scores, sizes.kinds.weights) == (scores, weights)


def test_float8_takes_hardware_that_converts_it():
    cache = "k: float8_e4m3fn\nv: float8_e4m3fn\n" + FORMS["grouped heads"]
    held = workload(cache, b=1, h=4, i=4, j=64, d=32, e=32, dtype="bfloat16")
    for work, others in ((SHORT, ["chained_hopper"]), (held, [])):
        assert "sm_80 does not convert float8_e4m3fn" in (CudaChained.why_not(work, A100) or "")
        assert CudaChained.why_not(work, cuda_target("sm_89")) is None
        assert list(space_for(work, H200).templates) == [*others, "chained"]


def test_float8_weights_take_tiles_of_whole_fragments_and_are_never_late():
    space = Space(SHORT, H200, [CudaChained(SHORT, H200)])
    found = [dict(space.schedule(r).values) for r in space.sample(np.random.default_rng(0), 200)]
    short = [values for values in found if values["weight_dtype"] == E4M3]
    assert 20 < len(short) < 200
    assert {values["keys"] % 32 for values in short} == {0}
    assert "late" not in {values["rescale"] for values in short}
    assert "late" in {values["rescale"] for values in found}


VALUES = "v[b,h // 2,j,e]"
ROTATED = (
    "t[b,h,i,d] = CAST(q[b,h,i,d] * c[i,d])\ns[b,h,j,d] = CAST(k[b,h,j,d] * c[j,d])\n"
    "y[b,h,i] = logsumexp[j](sum[d](t[b,h,i,d] * s[b,h,j,d]))"
)


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        (f"v: float32\n{SOFT}{VALUES})", "v[b, h // 2, j, e]"),
        (f"q: float32\n{SOFT}{VALUES})", "q[b, h, i, d]"),
        (f"k: float32\ny[b,h,i] = logsumexp[j]({SCORE})", "k[b, h // 2, j, d]"),
        (f"v: int32\n{SOFT}{VALUES})", "v[b, h // 2, j, e]"),
        (f"v: int8\n{SOFT}{VALUES})", "exp(y_sum[b, h, i, j] - y_max[b, h, i])"),
        (f"{SOFT}sigmoid({VALUES}))", "sigmoid(v[b, h // 2, j, e])"),
        (ROTATED.replace("CAST", ""), "q[b, h, i, d] * c[i, d]"),
    ],
)
def test_what_a_product_means_in_float32_is_not_rounded_to_16_bits(text, factor):
    """Verification found right kernels of these wrong."""
    work = Workload("program", (), made(text, "bfloat16"), "")
    why = f"{factor} would be rounded to bfloat16, in a product that means float32"
    advice = "allowed: a cast in the text, bfloat16(...)"
    assert CudaChained.why_not(work, H200) == f"{why}; {advice}"


@pytest.mark.parametrize(
    "text",
    [
        ROTATED.replace("CAST", "bfloat16"),
        FORMS["two products"],
        f"q: int8\n{SOFT}{VALUES})",
        "u: float32\ny[b,h,i] = logsumexp[j](sum[d](q[b,h,i,d] * u[d] * k[b,h // 2,j,d]))",
    ],
)
def test_what_is_cast_or_stands_beside_16_bits_may_be_rounded(text):
    work = Workload("program", (), made(text, "bfloat16"), "")
    assert CudaChained.why_not(work, H200) is None


TWO_VALUES = (
    "p[b,h,i,j] = softmax[j](sum[d](q[b,h,i,d] * k[b,h,j,d]) * 0.1)\n"
    "y[b,h,i,e] = sum[j](p[b,h,i,j] * v[b,h,j,e]); z[b,h,i,e] = sum[j](p[b,h,i,j] * u[b,h,j,e])\n"
    "-> y, z"
)
HEADS = {"b": 1, "h": 2, "i": 64, "j": 128}


@pytest.mark.parametrize("target", [H200, A100])
@pytest.mark.parametrize(
    ("text", "extents", "why"),
    [
        (
            "p[i,j] = sum[d](x[i,d] * u[j,d])\ny[i] = argmax[j](p[i,j])",
            {"i": 64, "j": 128, "d": 4096},
            "the tiles of a block take 393216 bytes of shared memory",
        ),
        (TWO_VALUES, {**HEADS, "d": 64, "e": 256}, "a thread needs about 320 registers"),
    ],
)
def test_what_leaves_a_block_no_room_for_any_tile_is_left_to_others(text, extents, why, target):
    work = workload(text, **extents, **HALF)
    assert (CudaChained.why_not(work, target) or "").startswith(why)
    space = space_for(work, target)
    assert "staged" in space.templates
    assert len(space.sample(np.random.default_rng(0), 4)) == 4


@pytest.mark.parametrize("depth", [2400, 2416])
def test_the_longest_rows_that_it_serves_have_tiles(depth):
    work = workload("y[i] = argmax[j](sum[d](x[i,d] * u[j,d]))", i=64, j=128, d=depth, **HALF)
    assert CudaChained.why_not(work, H200) is None
    assert len(space_for(work, H200).sample(np.random.default_rng(0), 4))


@pytest.mark.parametrize(
    ("rows", "depth", "idle"), [(4096, 1024, False), (4096, 2048, True), (16, 2048, False)]
)
def test_a_block_without_room_for_a_warp_on_each_tensor_core_leaves_some_idle(rows, depth, idle):
    """That is four of sixteen rows each, or as many as there are rows for."""
    text = "y[i] = argmax[j](sum[d](x[i,d] * u[j,d]))"
    work = workload(text, i=rows, j=128, d=depth, **HALF)
    assert bool(CudaChained.leaves_idle(work, H200)) == idle
    assert ("staged" in space_for(work, H200).templates) == idle


def test_tiles_outside_are_counted_as_not_visited():
    whole = workload("attention", b=1, h=8, i=2048, j=2048, d=128, **HALF)
    counts = []
    for w in (whole, PREFILL):
        template = CudaChained(w, H200)
        columns = {d.name: np.array([d.values[0]]) for d in template.decisions}
        counts.append(template.quantities(columns)["tile_visits"][0])
    assert counts[1] < 0.6 * counts[0]


def test_parts_of_the_keys_wait_for_memory_to_be_merged_but_within_a_cluster():
    """Causal attention with 12 heads of 128 by 64 took 10.8 us on an H200 in parts, 5.6 whole."""
    work = workload("attention", b=1, h=12, i=128, j=128, d=64, dtype="float16")
    template, merges = CudaChained(work, H200), ["kernel", "last", "cluster"]
    columns = {d.name: np.array([d.values[0]] * 3) for d in template.decisions}
    columns |= {"merge": np.array(merges), "splits": np.array([4, 4, 4])}
    kernel, last, cluster = template.quantities(columns)["instructions"]
    assert kernel == last > cluster


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_sums_of_scores_and_a_mask_that_has_no_heads_are_served(dtype):
    """Of one head, a factor of the second sum is itself a sum."""
    text = f"q: {dtype}; k: {dtype}; v: {dtype}; n: int32[h](index < 65); where j < n[h]; "
    text += "y[h,i,e] = sum[j]((sum[d](q[h,i,d] * k[h,j,d]) + a[i,j]) * v[h,j,e])"
    work = workload(text, h=1, i=8, j=64, d=8, e=64)
    assert space_for(work, H200).templates
