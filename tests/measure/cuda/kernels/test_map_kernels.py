"""Kernels of maps: hard cases and planted bugs on the emulator, and machine code."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_right, deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.constant_programs import PRODUCT, with_constant
from tests.spaces.derivation.maps.random_maps import random_map
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.cuda.emulator.emulator import INTERLEAVINGS
from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.spaces.cuda.maps.template import CudaMap
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

PLAIN = {
    "vector": 4,
    "tile_rows": 32,
    "tile_columns": 32,
    "threads": 64,
    "order": "rows",
    "stores": "cached",
    "lanes": "tile",
}
TARGET = cuda_target("sm_90a")
FUSED = "y[j, i] = relu(x[i, j] + b[i] * v[j])"


CONSTANT = with_constant(PRODUCT)


@deferred
def case(w: Workload, **values: int | str) -> Case:
    """The workload, and the kernel of a schedule."""
    template = CudaMap(w, TARGET)
    chosen = {d.name: (PLAIN | values)[d.name] for d in template.decisions}
    return w, Space(w, TARGET, [template]).lower(Schedule("map", tuple(chosen.items())))


def randomly(seed: int) -> Case:
    w = workload_of(random_map(seed, 6000, ("float32", "bfloat16", "float16")))
    space = Space(w, TARGET, [CudaMap(w, TARGET)])
    row = space.sample(np.random.default_rng(seed), 64)[0]
    return w, space.lower(space.schedule(row))


WIDE = {"tile_rows": 64, "tile_columns": 64, "vector": 8}
EIGHT = "x: bfloat16; y: float8_e4m3fn; y[j, i] = x[i, j] * 0.5"
CASES = {
    "whole tiles": case(workload(FUSED, i=96, j=64)),
    "tails": case(workload(FUSED, i=76, j=44), order="columns", stores="stream"),
    "odd": case(workload(FUSED, i=37, j=53), vector=1),
    "odd, by lines": case(workload(FUSED, i=37, j=53), vector=1, lanes="line"),
    "odd, more than a line": case(
        workload("y[b, j, i] = x[b, i, j]", b=2, i=77, j=135, dtype="bfloat16"),
        **{"vector": 1, "tile_rows": 128, "tile_columns": 64, "lanes": "line"},
    ),
    "read by lines": case(
        workload("x: float32[64, 65]; y[j, i] = x[i, j + 1]", i=64, j=64),
        **{"vector": 1, "tile_rows": 64, "lanes": "line"},
    ),
    "written by lines": case(workload(FUSED, i=44, j=64), tile_columns=64, lanes="line"),
    "two bytes": case(workload(FUSED, i=72, j=136, dtype="bfloat16"), **WIDE),
    "two and one": case(workload(EIGHT, i=80, j=48), **WIDE | {"vector": 16}),
    "turned twice": case(
        workload(
            "y[k, j, i] = x[k, i, j] - z[i, k, j]; w[k, j, i] = -y[k, j, i]; -> y, w",
            i=20,
            j=36,
            k=3,
        )
    ),
    "halves": case(workload("rope", b=2, t=3, h=16, d=64), tile_rows=16),
    "gathered": case(
        workload("t: int32[40](index < 9); y[i, j] = x[t[i], j] + u[t[j]]", i=40, j=40)
    ),
    "whole numbers": case(workload("x: int8; y[j, i] = x[i, j]; y: int8", i=48, j=80), vector=16),
    "eight bytes": case(
        workload("y[j, i] = x[i, j]", i=37, j=36, dtype="float64"), vector=2, tile_columns=16
    ),
    "places apart": case(workload(CONSTANT), tile_rows=8, vector=1),
    "a line": case(workload("swiglu", r=3, c=333), tile_rows=1, tile_columns=512, vector=2),
    **{f"random {seed}": randomly(seed) for seed in (0, 3, 8, 9, 18, 68)},
}

# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "no barrier": ("whole tiles", r"tw::sync_block\(\);", ""),
    "written without the swizzle": (
        "whole tiles",
        r"\^ \(8 \* e \+ 4 \* \(thread / 32\)\)",
        "^ 0",
    ),
    "read without the swizzle": (
        "whole tiles",
        r"\) \^ \(4 \* \(\(int\)threadIdx.x % 8\)\)",
        ")",
    ),
    "a tile twice": ("tails", r"row0 = 32 \* ", "row0 = 0 * "),
    "rows that are not there": ("tails", r"a0 < 44\) tw_take", "a0 < 64) tw_take"),
    "stores rows that are not there": ("tails", r"a0 < 44\) \{", "a0 < 45) {"),
    "columns that are not there": ("odd", r"a1 < 37 && a0 < 53\) \{", "a1 < 38 && a0 < 53) {"),
    "one vector too few": ("tails", r"e < 4", "e < 3"),
    "one row of vectors too few": ("tails", r"c0 < 4", "c0 < 3"),
    "batch for row": ("turned twice", r"36 \* a0 \+ a1", "36 * a1 + a0"),
    "both outputs of one": ("turned twice", r"tw_give<4, 4>\(x3", "tw_give<4, 4>(x2"),
    "the row's own index": ("gathered", r"tw_entry\(x0 \+ a0", "tw_entry(x0 + a1"),
    "lanes that do not come round": ("odd, by lines", r"\+ ahead\) % 32\);", "+ ahead));"),
    "written elsewhere than it was read": (
        "odd, by lines",
        r"(ahead = .*\n.*store_shared.*)\+ ahead",
        r"\1",
    ),
    "another place's element": ("places apart", r"\+ 19\b", "+ 38"),
    "a constant of another sign": ("places apart", r"-\(", "+("),
    "wild indices": ("gathered", r"\? \(int\)i : below - 1", "? (int)i + below : below - 1"),
}


class TestMapKernels(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.parametrize("name", ["whole tiles", "two bytes", "read by lines"])
def test_lanes_meet_different_banks(emulator, name):
    w, kernel = CASES[name]
    assert emulator.run(kernel, w.make_inputs(0), INTERLEAVINGS[0]).conflicts == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_more_random_maps_agree_with_the_reference(seed):
    made = randomly(seed)
    try:
        check_sensitivity(made[0])
    except InputError as reason:
        pytest.skip(str(reason))
    with Emulator() as running:
        check_right(running, made)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_16_bytes_are_moved_at_once_and_nothing_spills(dtype):
    w = workload(FUSED, i=4096, j=4096, dtype=dtype)
    wide = WIDE | {"vector": 16 // w.inputs[0].element.bytes, "threads": 256}
    found = instructions("sm_90a", case(w, **wide))
    assert found["LDG.128"] > 0
    assert found["STG"] == found["STG.128"] > 0
    assert found["LDL"] == found["STL"] == 0
