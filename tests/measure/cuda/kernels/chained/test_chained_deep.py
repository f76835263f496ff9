"""Deep chained kernels of a GPU on the emulator: scores that grow step by step of their depth."""

from __future__ import annotations

import numpy as np
import pytest

from tests.covering import few
from tests.measure.cuda.emulator.planting import Case, check_all_right, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.chained_programs import made
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.spaces.cuda.chained_deep.template import ChainedDeep
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
PLAIN: dict[str, Value] = {
    "query_storage": "stages", "row_fragments": 1, "keys": 16, "warps": 2, "warp_splits": 1,
    "depth_step": 32,
    "stages": 3, "blocks_per_sm": 1, "rescale": "always", "splits": 1, "merge": "kernel",
    "order": "rows",
}  # fmt: skip
PRODUCT = "z[i,j] = sum[d](x[i,d] * w[j,d])\n"
LOSS = f"l: int32[i](index < 137)\n{PRODUCT}y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]"
SCALED = "sum[j](softmax[j](z[i,j] * 0.1) * v[j,e])"
FORMS = {
    "loss": LOSS,
    "statistics": f"{PRODUCT}m[i] = max[j](z[i,j])\ns[i] = sum[j](exp(z[i,j] - m[i]))\n-> m, s",
    "routing": f"{PRODUCT}y[i] = argmax[j](z[i,j])",
    "moments": f"{PRODUCT}m[i] = mean[j](z[i,j])\nv[i] = var[j](z[i,j])\n-> m, v",
    "weighed": f"{PRODUCT}y[i,e] = {SCALED}",
    "columns": f"z[i,j] = sum[d](x[i,d] * w[d,j])\ny[i,e] = {SCALED}",
    "masked": f"where j <= 3 * i + 8\n{PRODUCT}y[i,e] = {SCALED}",
    "twice": f"{PRODUCT}p[i,j] = softmax[j](z[i,j] * 0.1)\ny[i,e] = sum[j](p[i,j] * v[j,e])\n"
    "t[i,e] = sum[j](p[i,j] * u[j,e])\n-> y, t",
}
SCHEDULES: dict[str, dict[str, Value]] = {
    "plain": {},
    "kept": {"query_storage": "shared", "keys": 32, "rescale": "moved"},
    "last": {"splits": 3, "merge": "last", "row_fragments": 2, "warps": 1, "stages": 2},
    "later": {"splits": 4, "query_storage": "shared", "rescale": "late"},
    "teams": {"warp_splits": 4, "warps": 1, "stages": 2},
    "kept by teams": {"warp_splits": 2, "query_storage": "shared", "row_fragments": 2, "warps": 1},
    "cluster": {"warp_splits": 2, "splits": 2, "merge": "cluster", "keys": 32},
}


@deferred
def case(text: str, values: dict[str, Value], **changes: int) -> Case:
    """The kernel of a text, its extents primes."""
    extents = {"i": 37, "j": 137, "d": 83, "e": 19} | changes
    work = Workload("program", (), made(text, "bfloat16", **extents), "")
    template = ChainedDeep(work, H200)
    columns = {d.name: d.values[-1] for d in template.decisions if d.name == "columns"}
    schedule = Schedule("chained_deep", tuple((PLAIN | columns | values).items()))
    return work, template.lower(schedule)


CASES = {f"{name}, {how}": case(FORMS[name], SCHEDULES[how])
         for number, name in enumerate(FORMS)
         for how in [list(SCHEDULES)[(number + shift) % 7] for shift in (0, 3, 5)]}  # fmt: skip
CASES["copied"] = case(FORMS["weighed"], {"stages": 2}, d=88, e=24)
BROKEN = {how: case(LOSS, values) for how, values in SCHEDULES.items()}
BROKEN["in vectors"] = case(LOSS, {}, d=88)
BROKEN["sums"] = case(FORMS["twice"], {}, d=88, e=24)
OWN = r"(if \(tile < own_last && tile \+ 16 > own_first)(\) \{\n +const u32 stage = \w+ \+ step)"
LAST = r"((?:.*\n)*.*)"
"""Before the last match."""
MET = r"tw::cp_async_wait<1>\(\);\n +tw::sync_block\(\);"
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "the last step is left out": ("plain", OWN, r"\1 && depth_number < 2\2"),
    "the first step is left out": ("kept by teams", OWN, r"\1 && depth_number > 0\2"),
    "scores of the tile before are not cleared": (
        "plain",
        r"(for \(int tile = begin_key.*\n)( +float s.*= \{\};\n)",
        r"\2\1",
    ),
    "scores are cleared in each step": (
        "plain",
        r"( +float s.*= \{\};)\n((.*\n)+?)(.*if \(tile < own_last.*\{)\n",
        r"\1\n\2\4 for (auto &g : s) for (auto &h : g) for (auto &x : h) x = 0.0f;\n",
    ),
    "a stage is read before it is full": ("in vectors", r"tw::cp_async_wait<1>\(\);", ""),
    "a stage is read before all have filled it": ("plain", MET, "tw::cp_async_wait<1>();"),
    "a stage is filled while it is read": ("in vectors", r"\(step \+ 2\) % 3", "(step + 3) % 3"),
    "the next tile begins where the last one ended": (
        "plain",
        rf"{LAST}  next_depth = 0;",
        r"\1",
    ),
    "the next tile is the last one": ("plain", rf"{LAST}next_tile \+= 16;", r"\1"),
    "the last term is left out": ("plain", rf"{LAST}< 83 \?", r"\1< 82 ?"),
    "the last vector of terms is left out": ("in vectors", rf"{LAST}< 88 \?", r"\1< 80 ?"),
    "keys beyond the last": ("plain", r"to\[h\] = high\[r\]", "to[h] = 16 + high[r]"),
    "rows of the first step": ("kept", r"\d+ \* depth_number", "0 * depth_number"),
    "rows behind those of the keys": ("plain", r"(ldmatrix_x4\(a\[0\], stage \+ )\d+", r"\g<1>0"),
    "rows are read before all teams have loaded them": (
        "kept by teams",
        r"tw::cp_async_wait<2>\(\);\n +tw::sync_block\(\);",
        "",
    ),
    "a team fills the stages of the first": (
        "teams",
        r"ring = shared \+ team \* \d+",
        "ring = shared + 0 * team",
    ),
    "matrices come a step late": ("sums", r"if \(depth_number == 0\)", "if (depth_number == 1)"),
    "matrices of the tile that is copied": (
        "sums",
        r"(if \(depth_number == 0\) \{\n(?:.*\n)*?.*)\btile \+",
        r"\1next_tile +",
    ),
    "the second matrix for the first": ("sums", r"stage \+ 10240", "stage + 9216"),
    "parts have the keys of the first": (
        "last",
        r"begin_key \+= part \* share",
        "begin_key += 0 * share",
    ),
    "the total of the tiles before is not corrected": (
        "later",
        r"state1\[r\], factor0\[h\]",
        "state1[r], 1.0f",
    ),
}  # fmt: skip


class TestChainedDeep(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


def space_of(text: str, **extents: int) -> Space:
    work = workload(text, **extents, dtype="bfloat16")
    return Space(work, H200, [ChainedDeep(work, H200)])


@pytest.mark.parametrize("count", few(2, of=4))
@pytest.mark.parametrize("name", ["loss", "routing", "weighed"])
def test_depths_that_no_block_has_room_for_agree(emulator, name, count):
    """Random schedules of the space."""
    extents = {"i": 37, "j": 137, "d": 1217} | ({"e": 19} if name == "weighed" else {})
    space = space_of(FORMS[name].replace("0.1", "0.02"), **extents)
    assert ChainedDeep.refuses(space.workload, H200) is None
    rows = space.sample(np.random.default_rng(7), count)
    cases = [(space.workload, space.lower(space.schedule(row))) for row in rows]
    check_all_right(emulator, cases)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", FORMS)
def test_many_random_schedules_agree(emulator, name, seed):
    """At depths, keys and rows that leave no tail, one or several."""
    draw = np.random.default_rng(seed)
    extents = {a: int(draw.choice([16, 17, 37, 64, 80])) for a in "ie"}
    extents |= {"d": int(draw.choice([64, 83, 88, 256, 257])), "j": 137}
    work = case(FORMS[name], {}, **extents)[0]
    space = Space(work, H200, [ChainedDeep(work, H200)])
    rows = space.sample(draw, 8)
    cases = [(work, space.lower(space.schedule(row))) for row in rows]
    check_all_right(emulator, cases)


@pytest.mark.parametrize("scale", [1e4, -1e4, 0.0])
def test_scores_that_overflow_an_exponential_and_equal_ones_agree(emulator, scale):
    """The loss of equal logits is the log of how many there are."""
    for how in ("plain", "later", "cluster"):
        work, kernel = BROKEN[how]
        inputs = dict(work.make_inputs(0))
        inputs["x"] = np.zeros_like(inputs["x"])
        inputs["x"][:, 0] = scale
        inputs["w"][:, 0] = 1
        result = emulator.run(kernel, inputs, INTERLEAVINGS[0])
        assert result.error_kind is None, result.error_text
        found = result.outputs["y"].astype(np.float64)
        np.testing.assert_allclose(found, np.log(137), rtol=0.01)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "values",
    [
        {
            "row_fragments": 2,
            "keys": 128,
            "warps": 8,
            "splits": 8,
            "merge": "last",
            "rescale": "late",
        },
        {"query_storage": "shared", "warps": 1, "warp_splits": 4, "splits": 2},
    ],
)
def test_kernels_compile_for_the_gpu_without_spills(target, values):
    """A linear layer of 2,048 features and its loss over 128,256 words."""
    text = LOSS.replace("137", "128256")
    work = workload(text, i=4096, j=128256, d=2048, dtype="bfloat16")
    template = ChainedDeep(work, cuda_target(target))
    space = Space(work, cuda_target(target), [template])
    schedule = Schedule("chained_deep", tuple((PLAIN | {"columns": 0} | values).items()))
    kernel = space.lower(schedule)
    built = compile_cubin(
        device_text(kernel.source.text) + kernel.source.text, target, 120, lambda: False
    )
    assert built.cubin is not None, built.log[:2000]
    assert " 0 bytes spill stores" in built.log
