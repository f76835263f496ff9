"""Kernels along kept axes: hard cases and planted bugs on the emulator, and machine code."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_right, deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.derivation.kept.random_windows import random_window
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.spaces.cuda.kept.template import CudaKept
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

PLAIN: dict[str, int | str] = {
    "vector": 1,
    "coarsened_axis": "none",
    "coarsening": 1,
    "unroll": 2,
    "prefetch": 1,
    "threads": 64,
    "reduction_threads": 1,
    "splits": 1,
    "stores": "cached",
}
TARGET = cuda_target("sm_90a")


@deferred
def case(w: Workload, **values: int | str) -> Case:
    """The workload, and the kernel of a schedule."""
    space = Space(w, TARGET, [CudaKept(w, TARGET)])
    return w, space.lower(Schedule("kept", tuple((PLAIN | values).items())))


def randomly(seed: int) -> Case:
    w = workload_of(random_window(seed, ("float32", "bfloat16", "float16")))
    space = Space(w, TARGET, [CudaKept(w, TARGET)])
    row = space.sample(np.random.default_rng(seed), 64)[0]
    return w, space.lower(space.schedule(row))


DEPTHWISE = {"r": 3, "s": 3, "padding": 1}
NHWC = workload(
    "conv2d", n=2, c=20, h=7, w=9, o=20, groups=20, layout="NHWC",
    epilogue="relu(x + bias[o])", **DEPTHWISE,
)  # fmt: skip
HALVES = workload(
    "conv2d", n=1, c=16, h=6, w=7, o=16, groups=16, layout="NHWC", dtype="float16", **DEPTHWISE
)
ODD = workload("conv2d", n=1, c=3, h=9, w=11, o=3, groups=3, **DEPTHWISE)
GROUPS = workload(
    "conv2d", n=2, c=3, h=5, w=7, o=24, r=3, s=2, stride=2, padding=1, groups=3, layout="NHWC"
)
SEVERAL = workload("conv2d", n=2, c=3, h=7, w=9, o=6, groups=3, **DEPTHWISE)
COLUMNS = workload("y[c] = sum[r](x[r, c]) * b[c]", r=300, c=37)
CASES = {
    "channels last": case(NHWC, vector=4, coarsened_axis="a2", coarsening=4),
    "rows rolled": case(
        NHWC, vector=4, coarsened_axis="a1", coarsening=2, unroll=1, stores="stream"
    ),
    "halves": case(HALVES, vector=8, coarsened_axis="a1", coarsening=4, unroll=2),
    "channels first": case(ODD, vector=4, coarsened_axis="a1", coarsening=3),
    "pooling": case(
        workload("max_pool2d", n=2, c=3, h=9, w=9, r=3, stride=2, padding=1),
        coarsened_axis="a1",
        coarsening=2,
    ),
    "groups of a task": case(GROUPS, vector=4, coarsened_axis="a3", coarsening=2),
    "a group of a task": case(GROUPS, vector=4, coarsened_axis="a2", coarsening=2),
    "two outputs of a channel": case(SEVERAL, vector=4, coarsened_axis="a2", coarsening=3),
    "threads share": case(COLUMNS, vector=4, unroll=0, reduction_threads=8),
    "blocks share": case(COLUMNS, vector=1, unroll=0, splits=4, prefetch=4),
    "both share": case(COLUMNS, vector=2, unroll=0, reduction_threads=4, splits=8),
    **{f"random {seed}": randomly(seed) for seed in (0, 1, 2, 5, 9, 14)},
}

# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "no barrier": ("threads share", r"tw::sync_block\(\);", ""),
    "a part is left out": ("threads share", r"q < 8; q\+\+", "q < 7; q++"),
    "a part twice": ("both share", r"int q = 1;", "int q = 0;"),
    "a neighbour's accumulator": ("threads share", r"threadIdx.x \+ q \* 8\)", "threadIdx.x + q)"),
    "parts overlap": ("blocks share", r"a1 \+= 4", "a1 += 3"),
    "parts begin together": ("both share", r"a1 = part", "a1 = 0"),
    "a block's parts are not merged": ("blocks share", r"other < 4;", "other < 3;"),
    "another part's place": ("both share", r"2 \* \(part / 4\)", "2 * (part / 2)"),
    "a block's own part counts twice": ("blocks share", r"s\[0\] = 0.0f;", ""),
    "a block goes on before it is the last": ("both share", r"\) != 7\) return", ") < 6) return"),
    "the ticket is kept": ("blocks share", r"tw::store_global\(tickets, 0u\);", ""),
    "another's ticket": ("both share", r"workspace \+ own / 16", "workspace + own / 64"),
    "the last task is not clamped": ("channels last", r" < 5 \? .*? : 5;", ";"),
    "a border is read": ("channels last", r">= 0\)", ">= -1)"),
    "a border is passed over": ("channels last", r"\) < 7\b", ") < 6"),
    "the filter of another channel": ("halves", r"h0\[13\]", "h0[14]"),
    "the filter of another tap": ("halves", r"x1 \+ \(9 \*", "x1 + (1 + 9 *"),
    "lanes that are not there": ("channels first", r"left = 11 - ", "left = 12 - "),
    "no clean start": ("channels first", r"s\[12\] = \{0.0f", "s[12] = {1.0f"),
}


class TestKeptKernels(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_random_windows_agree_with_the_reference(seed):
    made = randomly(seed)
    try:
        check_sensitivity(made[0])
    except InputError as reason:
        pytest.skip(str(reason))
    with Emulator() as running:
        check_right(running, made)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_filters_and_images_are_moved_16_bytes_at_a_time_and_nothing_spills(arch):
    w = workload(
        "conv2d", n=32, c=96, h=56, w=56, o=96, groups=96, layout="NHWC", dtype="float16",
        **DEPTHWISE,
    )  # fmt: skip
    found = instructions(arch, case(w, vector=8, coarsened_axis="a2", coarsening=4, threads=128))
    assert found["LDG"] == found["LDG.128"] == 9 + 3 * 6
    assert found["STG"] == found["STG.128"] == 4
    assert found["LDL"] == found["STL"] == 0
