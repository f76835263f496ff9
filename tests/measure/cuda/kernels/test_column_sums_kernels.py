"""Kernels of rows with sums over all rows beside them, on the emulator: gradients of norms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_all_right
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.measure.cuda.kernels.rows_cases import AHEAD, BLOCK, CLUSTER, H200, KEPT, WARPS, case
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.rows.template import CudaRows
from tilewright.spaces.derivation.gradients.gradient import gradient
from tilewright.spaces.named import operator
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

LOOP = {"tile_scheduler": "persistent"}
ONE = {"vector": 1, "row_threads": 32, "block_rows": 1}


def norm(r: int, c: int, dtype: str = "float32", name: str = "layernorm") -> Workload:
    """The gradient of a norm by all its operands."""
    wanted, saved = {
        "layernorm": (("x", "weight", "bias"), ("mean", "rstd")),
        "rmsnorm": (("x", "weight"), ()),
    }[name]
    made = gradient(operator(name, r=r, c=c, dtype=dtype), wrt=wanted, saved=saved)
    return workload(made.text)


CASES = {
    "a tile each": case(norm(40, 128), WARPS),
    "a tail of columns": case(norm(5, 260), BLOCK),
    "a prime": case(norm(7, 131), BLOCK | {"vector": 1}),
    "two rows at once": case(norm(37, 128, "bfloat16"), WARPS | {"thread_rows": 2}),
    "several tiles a block": case(norm(300, 256), BLOCK | LOOP),
    "copied ahead": case(norm(300, 256, "float16"), BLOCK | AHEAD),
    "weights kept": case(norm(300, 256, "bfloat16"), BLOCK | KEPT),
    "a cluster": case(norm(150, 140), CLUSTER | LOOP),
    "blocks of rows": case(norm(8977, 32), WARPS | ONE | LOOP | {"thread_rows": 4}),
    "one output": case(norm(60, 128, name="rmsnorm"), WARPS | {"row_storage": "shared"}),
}
BUGS = {
    "counts a row that is not there": (
        "two rows at once",
        r"if \(row0 \+ k \* 2 < 37\)",
        "if (true)",
    ),
    "leaves a part out": ("a tile each", r"part < 40", "part < 39"),
    "adds a part twice": ("a tile each", r"part = lane / 8", "part = lane / 16"),
    "leaves lanes out": ("a tile each", r"total \+= tw::shuffle_xor\(total, 16\);", ""),
    "puts a sum to the other's place": ("a tile each", r"\(40 \+ \(i64\)", "(0 + (i64)"),
    "loses a block of rows": ("blocks of rows", r"sum0\[e\] \+= own0\[e\];", ""),
    "adds a block of rows again": ("blocks of rows", r" own1\[e\] = 0;", ""),
    "loses all blocks but the last": ("blocks of rows", r"own0\[e\] \+= sum0\[e\];", ""),
    "forgets the tiles before": (
        "several tiles a block",
        r"own0\[u \* 4 \+ 1\] \+=",
        "own0[u * 4 + 1] =",
    ),
    "a cluster writes another's part": ("a cluster", r"\(i64\)blockIdx\.x / 2\)", "(i64)0)"),
}


class TestColumnSums(KernelContract):
    cases, broken, bugs = CASES, {}, BUGS


def sampled(count: int, seed: int) -> list[Case]:
    """Random schedules of gradients of norms, ``count`` of each."""
    generator, found = np.random.default_rng(seed), []
    for work in (norm(37, 96, "bfloat16"), norm(300, 40), norm(5, 1000, "float16", "rmsnorm")):
        space = Space(work, H200, [CudaRows(work, H200)])
        rows = space.sample(generator, count)
        found += [(work, space.lower(space.schedule(row))) for row in rows]
    return found


def test_random_schedules_are_right(emulator):
    check_all_right(emulator, sampled(2, seed=1))


@pytest.mark.slow
def test_many_random_schedules_are_right(emulator):
    check_all_right(emulator, sampled(30, seed=2))


@pytest.mark.parametrize("storage", ["registers", "memory"])
def test_sums_stay_in_registers(storage):
    values = WARPS | LOOP | {"vector": 8, "row_threads": 256, "block_rows": 1, "unroll": 1}
    values |= {"row_storage": storage, "unroll": 2 if storage == "memory" else 1}
    _, kernel = case(norm(4096, 4096, "bfloat16"), values)
    text = device_text(kernel.source.text) + kernel.source.text
    built = compile_cubin(text, "sm_90a", 120, lambda: False)
    assert built.cubin is not None, built.log[:2000]
    assert "spill" in built.log
    assert all(
        " 0 bytes spill stores" in line for line in built.log.splitlines() if "spill" in line
    )
