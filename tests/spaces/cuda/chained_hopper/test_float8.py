"""Chained kernels on Hopper in float8: which programs have some, and what their space is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tilewright.spaces.cuda.chained_hopper.fetching.transposing import NAME
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.staged.template import CudaStaged
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.kernel import WORKSPACE, Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import TemplateContract
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
E4M3 = "float8_e4m3fn"
SCORE = "sum[d](q[b,h,i,d] * k[b,h,j,d])"
SOFT = f"y: bfloat16[b,h,i,e]\ny[b,h,i,e] = sum[j](softmax[j]({SCORE}) * "
PLAIN = f"{SOFT}v[b,h,j,e])"
TRANSPOSED = PLAIN.replace("k[b,h,j,d]", "k[b,h,d,j]")


def program(text: str, **changes: int) -> Workload:
    extents = {"b": 1, "h": 4, "i": 300, "j": 331, "d": 128, "e": 72} | changes
    return workload(text, **extents, dtype=E4M3)


def space_of(w: Workload) -> Space:
    return Space(w, H200, [ChainedHopper(w, H200)])


def lowered(w: Workload, seed: int = 0) -> Kernel:
    space = space_of(w)
    return space.lower(space.schedule(space.sample(np.random.default_rng(seed), 1)[0]))


class TestChainedHopper(TemplateContract):
    template = ChainedHopper

    def served(self):
        halves = workload("attention", b=1, h=8, i=300, j=331, d=64, dtype="bfloat16")
        return [(halves, H200), (program(PLAIN), H200), (program(PLAIN, i=64, e=200), H200)]

    def refused(self):
        return [(program(TRANSPOSED), H200), (program(PLAIN), cuda_target("sm_80"))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TRANSPOSED, "k[b, h, d, j] lies along j; needs 8 bits along its depth"),
        (f"q: bfloat16\n{PLAIN}", "factors are bfloat16, float8_e4m3fn, float8_e4m3fn; allowed: "),
        (f"y[b,h,i,e] = sum[j](sigmoid({SCORE}) * v[b,h,j,e])", "is no weight of at most one"),
        (f"t: int32[h](index < 9)\n{SOFT}v[t[h],j,e])", "copies are made of heads alone"),
    ],
)
def test_what_has_no_kernels_is_refused_in_words(text, why):
    assert why in (ChainedHopper.refuses(program(text), H200) or "")


def test_copies_for_few_rows_are_refused():
    why = ChainedHopper.refuses(program(PLAIN, i=63), H200)
    assert why is not None
    assert why.startswith("63 rows share a matrix of 8 bits, which is copied first; needs 64")


def test_tma_brings_rows_and_keys_and_no_values_as_they_lie():
    why = "q is 72 bytes apart along i; TMA needs a multiple of 16"
    assert ChainedHopper.refuses(program(PLAIN, d=72), H200) == why
    assert ChainedHopper.refuses(program(PLAIN, e=7), H200) is None


def test_tiles_are_whole_products_and_corrections_never_late():
    space = space_of(program(PLAIN))
    found = [dict(space.schedule(r).values) for r in space.sample(np.random.default_rng(0), 200)]
    assert {values["keys"] % 32 for values in found} == {0}
    assert {values["rescale"] for values in found} == {"always", "moved"}


def test_the_matrix_is_turned_first_in_the_workspace_behind_all_else():
    kernel = lowered(program(PLAIN))
    transposing, taking, *_ = kernel.call.launches
    copy = transposing.buffers[-1]
    assert copy.inside == WORKSPACE
    assert copy.bytes == 4 * 72 * 336
    assert kernel.call.workspace_bytes == copy.start + copy.bytes
    assert taking.early
    assert not transposing.early
    assert taking.buffers[-1] == copy
    assert {spec.operand for spec in taking.tensor_maps} >= {"q", "k", copy.name}


def test_the_copy_keeps_its_place_where_its_kernels_are_some_of_several():
    chain = PLAIN.removeprefix("y: bfloat16[b,h,i,e]\n").replace("y[", "p[")
    halves = "w: bfloat16[e,f]; y: bfloat16[b,h,i,f]\n"
    w = program(f"{halves}{chain}\ny[b,h,i,f] = sum[e](p[b,h,i,e] * w[e,f])", h=32, i=4096, f=64)
    space = Space(w, H200, [CudaStaged(w, H200)])
    found = [space.lower(space.schedule(r)) for r in space.sample(np.random.default_rng(0), 24)]
    places = [[b for b in k.call.launches[1].buffers if b.inside == WORKSPACE] for k in found]
    assert any(b.name == WORKSPACE for each in places for b in each)
    for each in places:
        assert any(b.name == NAME for b in each)
        for one, other in combinations(each, 2):
            assert one.start + one.bytes <= other.start or other.start + other.bytes <= one.start


def test_the_copy_counts():
    space = space_of(program(PLAIN))
    quantities = space.quantities(space.sample(np.random.default_rng(0), 50))
    assert quantities["packing_bytes"].min() == 2 * 4 * 72 * 336


def test_weights_are_raised_in_their_exponent_and_totals_are_not():
    """One product for the scales of a row, and none for raising."""
    text = f"a: float32[h]\nc: float32[h]\n{PLAIN.replace(SCORE, f'{SCORE} * a[h] * c[h]')}"
    w = program(text)
    space = space_of(w)
    (row,) = space.sample(np.random.default_rng(3), 1)
    body = space.lower(space.schedule(row)).source.body
    assert "+ 8.0f)" in body
    assert "= (0.00390625f * x" in body
    assert "[r] * x0)" in body
    assert "(x1 * " not in body
