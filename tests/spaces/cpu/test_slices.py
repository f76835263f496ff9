"""Products of matrices that are slices of larger ones."""

from __future__ import annotations

import dataclasses
import random

import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

EPILOGUES = ("", "relu(x + bias[n])", "gelu(x + bias[m]) + residual[m,n]")
ORDERS = ("row", "col")
DTYPES = ("float32", "bfloat16")
SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 12)) for seed in range(24)]


@pytest.mark.parametrize("seed", SEEDS)
def test_kernels_read_and_write_slices(seed, tmp_path):
    dtype, seed = DTYPES[(seed + seed // 12) % 2], seed % 12
    choose = random.Random(seed)
    threads = choose.choice((1, 2, 4))
    target = dataclasses.replace(this_cpu(), threads=threads, cores=threads)
    sizes = {"m": choose.choice((1, 5, 16, 40)), "n": choose.choice((1, 33, 70)), "k": 64 + seed}
    a, b, c = (choose.choice(ORDERS) for _ in range(3))
    least = {
        "lda": sizes["k" if a == "row" else "m"],
        "ldb": sizes["n" if b == "row" else "k"],
        "ldc": sizes["n" if c == "row" else "m"],
    }
    leading = {name: n + choose.choice((0, 1, 16, 50)) for name, n in least.items()}
    w = workload(
        "matmul", **sizes, a=a, b=b, c=c, dtype=dtype, epilogue=EPILOGUES[seed % 3], **leading
    )
    space = space_for(w, target)
    assert set(space.templates) <= {"contraction", "thin_dots", "thin_stream"}
    check_sampled(space, 3, seed, tmp_path)


def test_products_of_a_batch_may_lie_in_a_larger_array(tmp_path):
    w = workload("matmul batch=3 m=20 n=17 k=30 lda=96 ldc=64 epilogue=relu(x)")
    check_sampled(space_for(w, this_cpu()), 4, 0, tmp_path)
