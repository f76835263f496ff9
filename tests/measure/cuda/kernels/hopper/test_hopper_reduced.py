"""Hopper's kernel of products whose rows are reduced tile by tile: on the emulator, and NVRTC."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.hopper.hopper_problems import small_target
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.chained_programs import made
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.spaces.cuda.hopper_reduced.template import HopperReduced
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

SMALL, H200 = small_target(), cuda_target("sm_90a")
PLAIN: dict[str, Value] = {
    "swap_ab": False, "block_m": 64, "block_n": 64, "merge": "add", "schedule": "cooperative",
    "consumers": 1, "producer_registers": 0, "blocks_per_sm": 1, "cluster": "1x1", "depth": 32,
    "store_buffers": 0, "stages": 2, "in_flight": 0, "splits": 1, "raster": "along_columns",
    "raster_group": 1,
    "chunk": 16,
}  # fmt: skip
PRODUCT = "z[i,j] = sum[d](x[i,d] * w[j,d])\n"
LOSS = f"l: int32[i](index < 137)\n{PRODUCT}y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]"
FORMS = {
    "loss": LOSS,
    "statistics": f"{PRODUCT}m[i] = max[j](z[i,j])\ns[i] = sum[j](exp(z[i,j] - m[i]))\n-> m, s",
    "routing": f"{PRODUCT}y[i] = argmax[j](z[i,j])",
    "moments": f"{PRODUCT}m[i] = mean[j](z[i,j])\nv[i] = var[j](z[i,j])\n-> m, v",
    "scaled": "z[i,j] = 0.3 * sum[d](x[i,d] * w[j,d])\ny[i] = logsumexp[j](z[i,j] + b[j]) + c[i]",
}
SCHEDULES: dict[str, dict[str, Value]] = {
    "plain": {},
    "two blocks": {"block_m": 128, "block_n": 48, "chunk": 48, "stages": 3, "in_flight": 1},
    "turns": {
        "schedule": "pingpong",
        "consumers": 2,
        "block_n": 32,
        "chunk": 32,
        "raster": "along_rows",
    },
    "cluster": {"cluster": "2x1", "block_n": 80, "depth": 64},
    "wide cluster": {"cluster": "1x2", "block_m": 128, "consumers": 2},
    "all columns": {"block_n": 144, "chunk": 48},
}


@deferred
def case(text: str, values: dict[str, Value], **changes: int) -> Case:
    """The kernel of a text; its rows and columns fill no tile."""
    extents = {"i": 149, "j": 137, "d": 88} | changes
    work = Workload("program", (), made(text, "bfloat16", **extents), "")
    template = HopperReduced(work, SMALL)
    return work, template.lower(Schedule("hopper_reduced", tuple((PLAIN | values).items())))


CASES = {
    f"{name}, {how}": case(FORMS[name], SCHEDULES[how])
    for number, name in enumerate(FORMS)
    for how in [list(SCHEDULES)[(number + shift) % 6] for shift in (0, 2, 4)]
}
SHARE = f"{FORMS['routing']}\nm[i] = max[j](z[i,j])\ng[i] = 1 / sum[j](exp(z[i,j] - m[i]))\n-> y, g"
CASES["whole tiles"] = case(LOSS.replace("137", "128"), {}, i=128, j=128)
CASES["along columns"] = case(
    "z[i,j] = sum[d](x[i,d] * w[d,j])\ny[i] = argmax[j](z[i,j] * 2)", {}, j=136
)
FEW_ROWS = {"i": 9, "j": 8500, "d": 32}
CASES["more parts than lanes take at once"] = case(
    SHARE, {"block_n": 16, "raster": "along_rows"}, **FEW_ROWS
)
BROKEN = {how: case(LOSS, values) for how, values in SCHEDULES.items()}
MERGER = r"((?:.*\n)*.*_merge\((?:.*\n)*.*)"
"""All before the last match in the second kernel."""
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS: dict[str, tuple[str, str, str]] = {
    "columns beyond the last": ("plain", r"to\[h\] = high\[r\]", "to[h] = 16 + high[r]"),
    "all tiles are whole": ("turns", r"if \(tile \+ 32 <= 137\)", "if (tile < 137)"),
    "all parts are the first": ("plain", r"part = \(int\)column0 / 64", "part = 0 * (int)column0"),
    "all slices are a tile's first": (
        "two blocks",
        r"\(int\)row0 / 64 \+ b\)",
        "(int)row0 / 64 + 0 * b)",
    ),
    "the label is another row's": ("two blocks", r"row0 \+ b \* 64 \+ thread", "row0 + thread"),
    "keys are counted from the tile": ("plain", r"\(float\)first \+", "(float)(first - tile) +"),
    "lanes do not join their sums": (
        "cluster",
        r"state1\[r\] = state1\[r\] \+ tw::shuffle_xor\(state1\[r\], 2\);",
        "",
    ),
    "lanes do not join their maxima": (
        "turns",
        r"part0\[h\] = tw::max_nan\(part0\[h\], tw::shuffle_xor\(part0\[h\], 1\)\);",
        "",
    ),
    "tiles that are not there are left": ("wide cluster", r" && column0 < 137\)", ")"),
    "the last part is left out": (
        "plain",
        rf"{MERGER}first \+ n \* 4 < 3\)",
        r"\1first + n * 4 < 2)",
    ),
    "totals are not corrected": (
        "plain",
        rf"{MERGER}merged1 = tw::fused\(other1, .*?\), state1",
        r"\1merged1 = tw::fused(other1, 1.0f, state1",
    ),
    "the second kernel takes other rows": (
        "plain",
        rf"{MERGER}own / 8 % 2 \* 32",
        r"\1own / 8 % 2 * 0",
    ),
    "the second kernel takes another slice's rows": (
        "plain",
        rf"{MERGER}\(i64\)\(own / 64\)",
        r"\1(i64)(0)",
    ),
    "lanes do not merge what they have": (
        "plain",
        rf"{MERGER}tw::shuffle_xor\(state1\[r\], 2\)",
        r"\1state1[r]",
    ),
    "whole rows are written by all lanes": (
        "all columns",
        r"lane % 4 == 0 && own \+ r \* 8 < 149",
        "lane % 4 == 0",
    ),
}


class TestHopperReduced(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


def test_blocks_and_lanes_share_the_parts_of_few_rows():
    """One block merged all 501 of them, row after row."""
    work = workload(FORMS["routing"], i=64, j=128256, d=2048, dtype="bfloat16")
    values = {**PLAIN, "block_n": 256, "depth": 64, "stages": 4, "consumers": 1}
    kernel = HopperReduced(work, H200).lower(Schedule("hopper_reduced", tuple(values.items())))
    _, merging = kernel.call.launches
    assert (merging.grid, merging.block) == ((16, 1, 1), (128, 1, 1))


COMPILED = [LOSS.replace("137", "50257"), FORMS["routing"], SHARE]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (COMPILED[0], 1),
        *(pytest.param(text, 3, marks=pytest.mark.slow) for text in COMPILED),
    ],
)
def test_kernels_compile_without_spills(text, count):
    """Kernels whose chain takes few columns at a time spill nothing, whatever second kernels merge.
    The one with a chain, which has the most in registers, stands for all that take as long to
    compile."""
    work = workload(text, i=16384, j=50257, d=768, dtype="bfloat16")
    space = Space(work, H200, [HopperReduced(work, H200)])
    found = [space.schedule(row) for row in space.sample(np.random.default_rng(2), 64)]
    for schedule in [s for s in found if s.values["chunk"] <= 32][:count]:
        kernel = space.lower(schedule)
        built = compile_cubin(
            device_text(kernel.source.text) + kernel.source.text, "sm_90a", 120, lambda: False
        )
        assert built.cubin is not None, built.log[:2000]
        spilled = [line for line in built.log.split("\n") if "spill" in line]
        assert spilled
        assert all("0 bytes spill stores" in line for line in spilled), schedule
