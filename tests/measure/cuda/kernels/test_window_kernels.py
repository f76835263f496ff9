"""Kernels that read windows of shared memory in place: hard cases and planted bugs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.sass import count
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.cuda.windows.template import CudaWindows
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

PLAIN = {"tile_rows": 16, "tile_columns": 16, "warp_rows": 2, "warp_columns": 2}
PLAIN |= {"store_path": "direct", "coarsening": 2, "blocks_per_sm": 1}
SMALL = {"n": 2, "c": 3, "h": 13, "w": 11, "o": 24, "r": 3, "s": 3, "stride": 2, "padding": 1}


@deferred
def case(schedule: dict[str, int | str], **parameters: int | str) -> Case:
    """A convolution and its kernel. So few tiles would not be given to blocks in turn."""
    made = workload("conv2d", **SMALL | {"dtype": "float16", "layout": "NHWC"} | parameters)
    target = cuda_target("sm_80")
    assert CudaWindows.refuses(made, target) is None
    values = tuple((PLAIN | schedule).items())
    return made, CudaWindows(made, target).lower(Schedule("windows", values))


CASES = {
    "elements": case({}, epilogue="relu(x + bias[o])"),
    "vectors": case({}, h=16, w=16),
    "pairs": case({"store_path": "shared", "warp_rows": 1}, c=4, stride=1, dtype="bfloat16"),
    "no borders": case({}, n=3, padding=0, dilation=2, epilogue="x + residual[n, p, q, o]"),
    "one channel": case({"warp_columns": 1}, c=1, h=8, w=8),
    "large windows": case({"tile_rows": 32}, r=7, s=7, stride=3, padding=3),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "a border too near": ("elements", r"% 40\) >= 4 ", "% 40) >= 3 "),
    "a border too far": ("elements", r"% 15\) < 14 ", "% 15) < 15 "),
    "padding forgotten": ("elements", r" - 37\)\)", " - 34))"),
    "lines of another image": ("elements", r"429 \* ", "428 * "),
    "rows of the first image for all": ("elements", r"1200 \* \(row / 42\)", "0"),
    "one row for both": ("elements", r"places\[a0 % 2\]", "places[0]"),
    "terms of another lane": ("elements", r"x % 4 \* 8\);", "x % 4 * 4);"),
    "the first half of the terms twice": ("elements", r" \* 8 \+ 32\);", " * 8);"),
    "a run of the row before": ("elements", r"80 \* \(\(int\)threadIdx.x / 5\)", "0"),
    "pairs begin a term too late": ("elements", r" : 0\) - 2,", " : 0) - 0,"),
    "a filter too far": ("elements", r"right \+ 27 \*", "right + 1 + 27 *"),
    "a filter's terms begin too early": ("elements", r"% 10\) - 1\)", "% 10) - 0)"),
    "the same tile in each turn": ("elements", r" \+ 64 \* i0;", ";"),
    "a window of the tile before": ("elements", r"(int first = .*);", r"\1 > 0 ? 0 : 0;"),
    "the second term in both halves": (
        "large windows",
        r"(load_shared<u16>\(.*?terms\[2 \* \(a1 / 2\))\]",
        r"\1 + 1]",
    ),
    "terms in the wrong half": ("large windows", r"\) << 16", ")"),
    "no wait for the window": ("vectors", r"tw::cp_async_wait<0>\(\);", ""),
    "no barrier before it is read": (
        "vectors",
        r"(cp_async_wait<0>\(\);\s*)tw::sync_block\(\);",
        r"\1",
    ),
    "no barrier before the next one": (
        "elements",
        r"tw::sync_block\(\);(\s*if \(row0 \+ 64)",
        r"\1",
    ),
    "the next window over the one that is read": ("vectors", r"\(i0 \+ 1\) % 2", "i0 % 2"),
    "the first window for all": ("vectors", r"(shared = windows) \+ [^;]*;", r"\1;"),
    "no next window": ("vectors", r"row0 \+ 64 < 128", "row0 + 64 < 64"),
    "borders are not zero": ("vectors", r", \(\(first[^?]*\? 16 : 0", ", 16"),
    "a vector too few": ("vectors", r"threadIdx.x < 64", "threadIdx.x < 62"),
    "sums leave before all have read": (
        "pairs",
        r"tw::sync_block\(\);(\s*const u32 slab)",
        r"\1",
    ),
}


class TestWindows(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.parametrize("seed", range(6))
def test_random_windows_agree_with_the_reference(seed):
    generator = np.random.default_rng(seed)
    sizes = {name: int(generator.integers(7, 15)) for name in ("h", "w")}
    window = {name: int(generator.integers(2, 6)) for name in ("r", "s")}
    window |= {name: int(generator.integers(1, 3)) for name in ("stride", "dilation")}
    channels = {"c": int(generator.integers(1, 5)), "o": int(generator.choice([5, 16, 40]))}
    parameters = {"n": 2, "padding": 4, "layout": "NHWC"}
    parameters["dtype"] = ("float16", "bfloat16")[seed % 2]
    made = workload("conv2d", **parameters, **sizes, **window, **channels)
    target = cuda_target("sm_80")
    assert CudaWindows.refuses(made, target) is None
    space = Space(made, target, [CudaWindows(made, target)])
    verdicts = emulate(space, draw(space, 2, seed), seed=seed)
    assert all(verdict.right for verdict in verdicts), verdicts


def test_a_first_layer_is_copied_in_wide_vectors_and_spills_nothing():
    target = cuda_target("sm_90a")
    layer = {"n": 32, "c": 3, "h": 224, "w": 224, "o": 64, "r": 7, "s": 7, "stride": 2}
    made = workload("conv2d", **layer, padding=3, dtype="float16", layout="NHWC")
    space = Space(made, target, [CudaWindows(made, target)])
    values = {"tile_rows": 32, "tile_columns": 64, "warp_rows": 8, "warp_columns": 1}
    values |= {"store_path": "shared", "coarsening": 4, "blocks_per_sm": 2}
    schedule = Schedule("windows", tuple(values.items()))
    assert space.why_not(schedule) is None
    kernel, builder = space.lower(schedule), NvrtcBuilder(target)
    [built] = builder.build([Candidate(Job("test", made, target), schedule, kernel)])
    assert built.info["spill_bytes"] == 0
    found = count(read_cubin(built.binary.read_bytes(), kernel.call.entry).code)
    builder.close()
    assert found["LDGSTS"] == found["LDGSTS.128"] > 0
    assert found["STG"] == found["STG.128"] > 0
