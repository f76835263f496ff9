"""Kernels that read packed weights: every number of rows, tails, epilogues, dtypes and vectors."""

from __future__ import annotations

import dataclasses
import random

import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled
from tilewright.spaces.cpu.blocked.template import BlockedTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.thin.template import ThinPacked
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

EPILOGUES = (
    "",
    "relu(x + bias[n])",
    "gelu(x + bias[m]) * scale[] + residual[m,n]",
    "max(x - transposed[n,m], 0.25) / (1 + abs(column[n] * row[m]))",
    "select(x < bias[n], exp2(x * 0.1), log(abs(x) + 1)) + floor(x * 4)",
)
COLUMNS = (1, 5, 16, 33, 130, 257)
DEPTHS = (1, 7, 64, 129, 300, 600)
ROWS = (1, 2, 3, 8, 15, 16, 17, 31, 100, 193)
WITH_PAIRS = dataclasses.replace(made_up_cpu(), bf16_dot=True)


def space_of(w: Workload, target: CpuTarget) -> Space:
    made = (t for t in (BlockedTemplate, ThinPacked) if t.refuses(w, target) is None)
    return Space(w, target, [template(w, target) for template in made])


DTYPES = ("float32", "bfloat16")
SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 10)) for seed in range(20)]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_schedules_agree_with_the_reference(seed, tmp_path):
    dtype, seed = DTYPES[(seed + seed // 10) % 2], seed % 10
    choose = random.Random(seed)
    threads = choose.choice((1, 2, 4))
    target = dataclasses.replace(this_cpu(), threads=threads, cores=threads)
    if dtype == "bfloat16" and not target.bf16_dot:
        pytest.skip("no dot instruction of pairs here")
    w = workload(
        "matmul",
        m=ROWS[seed], n=choose.choice(COLUMNS), k=choose.choice(DEPTHS), b="packed", dtype=dtype,
        a=choose.choice(("row", "col")), epilogue=EPILOGUES[seed % 5],
    )  # fmt: skip
    check_sampled(space_of(w, target), 4, seed, tmp_path)


@pytest.mark.parametrize("m", [5, 40])
@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_narrower_vectors_take_whole_panels(vector_bytes, m, tmp_path):
    if vector_bytes == 32 and this_cpu().isa not in ("avx2", "avx512"):
        pytest.skip("no AVX2 here")
    isa = {32: "avx2", 16: "generic"}[vector_bytes]
    target = dataclasses.replace(
        this_cpu(), isa=isa, vector_bytes=vector_bytes, vector_registers=16, bf16_dot=False
    )
    space = space_of(workload("matmul", m=m, n=45, k=77, b="packed"), target)
    check_sampled(space, 6, 0, tmp_path)


def test_heads_share_packed_weights(tmp_path):
    w = workload("matmul m=20 n=33 k=40 heads=3 b=packed c=heads-m-n a=m-heads-k")
    check_sampled(space_of(w, this_cpu()), 4, 0, tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("m", range(1, 20))
def test_one_template_serves_every_shape(m, dtype):
    for n, k in ((1, 1), (40, 100), (5000, 5001), (16, 5000)):
        w = workload("matmul", m=m, n=n, k=k, b="packed", dtype=dtype)
        space = space_for(w, WITH_PAIRS)
        thin = m <= 16 and (dtype == "float32" or k % 2 == 0)
        assert list(space.templates) == ["thin_packed" if thin else "contraction"]
        assert space.count() > 0


def test_pairs_need_an_instruction():
    w = workload("matmul m=64 n=64 k=64 b=packed dtype=bfloat16")
    without = dataclasses.replace(made_up_cpu(), bf16_dot=False)
    assert "instructions for their dot products" in BlockedTemplate.refuses(w, without)
    assert list(space_for(w, without).templates) == ["staged_loops"]


@pytest.mark.parametrize("m", [4, 200])
def test_quantities_are_complete_and_packing_costs_nothing(m):
    w = workload("matmul", m=m, n=1000, k=900, b="packed", epilogue="relu(x)")
    target = dataclasses.replace(this_cpu(), threads=2, cores=2)
    found = checked_quantities(space_of(w, target), seed=0, schedules=300)
    assert (found["flops"] >= w.flops).all()
    left = 2.0 * 4 * m * 900
    assert (found["packing_bytes"] % left == 0).all()  # of the left operand alone


def test_the_rule_of_panels_speaks_where_vectors_are_narrow():
    w = workload("matmul m=100 n=200 k=100 b=packed")
    target = dataclasses.replace(this_cpu(), vector_bytes=32, isa="avx2", vector_registers=16)
    assert "panels" not in silent_rules([space_of(w, target)], 500)
