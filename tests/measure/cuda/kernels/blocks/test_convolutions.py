"""Convolutions by the templates of products, their operands gathered from places.

Every kernel runs on the emulator in eager, lazy and two random orders.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.blocks.convolution_cases import random_convolution
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.sass import count
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.simt.template import Simt
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities

FUSED = "relu(x + bias[o] + residual[n, p, q, o])"
ALONE = {"splits": 1, "raster": "along_columns", "raster_group": 1, "merge": "store"}
MMA = {
    "tile_rows": 32,
    "tile_columns": 16,
    "warp_rows": 1,
    "warp_columns": 1,
    "store_path": "direct",
}
MMA |= {"depth": 32, "stages": 3, "blocks_per_sm": 1, **ALONE}
LARGE = {
    "tile_rows": 64,
    "tile_columns": 32,
    "warp_rows": 2,
    "warp_columns": 2,
    "store_path": "shared",
}


def problems(count: int, seed: int) -> list[Space]:
    generator = np.random.default_rng(seed)
    return [random_convolution(generator, number) for number in range(count)]


def failures(spaces: list[Space], each: int, seed: int) -> list[str]:
    return [
        f"{space.workload} {space.target.name} {verdict}"
        for number, space in enumerate(spaces)
        for verdict in emulate(space, draw(space, each, seed + number), seed=seed)
        if not verdict.right
    ]


@pytest.mark.parametrize("group", range(3))
def test_random_schedules_of_convolutions_agree_with_the_reference(group):
    found = failures(problems(3, seed=7)[group::3], 1, group)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(5))
def test_many_more_schedules_agree_with_the_reference(seed):
    found = failures(problems(25, seed), 4, seed)
    assert not found, "\n".join(found)


PROGRAMS = {
    "a dilated window along time": (
        "x: float16[2,20,16]; y[b,t,o] = sum[k,c](x[b,t+2*k,c] * w[o,k,c])",
        {"b": 2, "t": 16, "o": 24, "k": 3, "c": 16},
    ),
    "overlapping rows": (
        "x: float16[4,9]; y[a,b,i,j] = sum[k](x[a,i+k] * w[b,j,k])",
        {"a": 4, "b": 5, "i": 7, "j": 8, "k": 3},
    ),
    "every second column, and something turned beside the sum": (
        "x: float16[9,66]; y[i,j] = relu(sum[k](x[i,2*k] * w[k,j]) + z[j,i])",
        {"i": 9, "j": 24, "k": 33},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_sum_of_products_in_places_is_served(name):
    text, extents = PROGRAMS[name]
    made = workload(text, **extents, dtype="float16")
    target = cuda_target("sm_80")
    for template in (Mma, Simt):
        found = failures([Space(made, target, [template(made, target)])], 1, 0)
        assert not found, "\n".join(found)


@deferred
def convolution(**changes: int | str) -> Case:
    """A small convolution of mma, some of its decisions or parameters changed."""
    parameters = {"n": 2, "c": 16, "h": 9, "w": 7, "o": 24, "r": 3, "s": 3, "stride": 2}
    parameters |= {"padding": 2, "dilation": 2, "dtype": "float16", "layout": "NHWC"}
    values = MMA | {name: value for name, value in changes.items() if name in MMA}
    parameters |= {name: value for name, value in changes.items() if name not in MMA}
    made = workload("conv2d", **parameters)
    target = cuda_target("sm_80")
    space = Space(made, target, [Mma(made, target)])
    return made, space.lower(Schedule("mma", tuple(values.items())))


WINDOWS = {"n": 2, "c": 32, "h": 7, "w": 9, "o": 24, "r": 3, "s": 2, "padding": 1}
STEPS = {"dilation": 2, "stride": 2}


def hopper(seed: int, **parameters: int | str) -> tuple[Space, list[Schedule]]:
    """A convolution by TMA and wgmma, and a random schedule of it."""
    made = workload("conv2d", **WINDOWS | parameters, dtype="float16", layout="NHWC")
    target = cuda_target("sm_90a")
    assert Hopper.refuses(made, target) is None
    space = Space(made, target, [Hopper(made, target)])
    return space, draw(space, 1, seed)


@deferred
def walking() -> Case:
    """A kernel of TMA and wgmma whose windows have strides and dilations."""
    values = {"swap_ab": False, "block_m": 64, "block_n": 16, "consumers": 1, "blocks_per_sm": 1}
    values |= {"schedule": "cooperative", "producer_registers": 0, "depth": 32, "cluster": "1x1"}
    values |= {"store_buffers": 0, "stages": 3, "in_flight": 0, **ALONE, "merge": "add"}
    space, _ = hopper(0, **STEPS, c=64, h=15, w=17)
    order = [decision.name for decision in space.templates["hopper"].decisions]
    schedule = Schedule("hopper", tuple((name, values[name]) for name in order))
    assert space.why_not(schedule) is None, space.why_not(schedule)
    return space.workload, space.lower(schedule)


CASES = {
    "one": convolution(),
    "groups": convolution(c=32, o=32, groups=2, epilogue="relu(x + bias[o])"),
    "registers": convolution(layout="NCHW", stride=1, epilogue="x + residual[n, o, p, q]"),
    "walk of TMA": walking(),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "a border tested with the other axis": (
        "one",
        r"left_at1\[left_0\] \+ left_to1\)",
        "left_at2[left_0] + left_to2)",
    ),
    "a border too far": ("one", r"< 7u", "< 9u"),
    "a border too near": ("one", r"< 7u", "< 6u"),
    "a stride for a dilation": ("one", r"(left_to1 = )2 \* ", r"\1"),
    "padding forgotten": ("one", r"(left_at1\[left_0\] = .*) \+ -2;", r"\1;"),
    "no zeros beyond a border": ("one", r" && \(u32\)\(left_at1[^?]*\? 16 : 0", " ? 16 : 0"),
    "places of the first tile at all steps": ("one", r"left_depth \+= 32;", ""),
    "a table of one row for all": ("one", r"left_at\[left_0\] \+ left_to", "left_at[0] + left_to"),
    "a table that is stale": ("one", r"int left_depth = depth0", "int left_depth = 32"),
    "taps and channels exchanged": ("one", r"left_term % 16", "left_term / 9"),
    "the first group for all": ("groups", r"(const f16 \*const left = whole_left) \+ [^;]*", r"\1"),
    "a filter of another group": (
        "groups",
        r"(const f16 \*const right = whole_right) \+ [^;]*",
        r"\1",
    ),
    "what is beside, of the first group": ("groups", r" \+ 16 \* \(int\)blockIdx.z\);", ");"),
    "zeros are not stored": (
        "registers",
        r"\} else \{\n[^}]*right_held",
        "} else if (0) {\n right_held",
    ),
    "a residual of another column": ("registers", r"(e_residual \+ )", r"\g<1>1 + "),
    "taps of the other dimension": (
        "walk of TMA",
        r"(im2col.*), ([^,]+), ([^,]+)\);",
        r"\1, \3, \2);",
    ),
    "a dilation left out": ("walk of TMA", r"(im2col.*), 2 \* ([^,]+)\);", r"\1, \2);"),
    "a stride left out": ("walk of TMA", r"(im2col[^%]*% \d+, )2 \* ", r"\1"),
    "borders left out": ("walk of TMA", r"(im2col.*) \+ -1,", r"\1,"),
    "the first channels again": ("walk of TMA", r"(im2col[^,]*,[^,]*, [^,]*, )[^,]*,", r"\g<1>0,"),
}


class TestConvolutions(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.parametrize(("seed", "parameters"), list(enumerate([{}, STEPS, {"epilogue": FUSED}])))
def test_windows_that_tma_walks_over_agree_with_the_reference(seed, parameters):
    space, schedules = hopper(seed, **parameters)
    verdicts = emulate(space, schedules, seed=seed)
    assert all(verdict.right for verdict in verdicts), verdicts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_many_windows_agree_with_the_reference(seed):
    generator = np.random.default_rng(seed)
    sizes = {name: int(generator.integers(3, 15)) for name in ("h", "w")}
    window = {name: int(generator.integers(1, 4)) for name in ("r", "s", "stride", "dilation")}
    channels = {"c": int(generator.choice([32, 64, 96])), "o": int(generator.choice([8, 24, 72]))}
    space, schedules = hopper(seed, **sizes, **window, **channels, padding=3)
    verdicts = emulate(space, schedules, seed=seed)
    assert all(verdict.right for verdict in verdicts), verdicts


def test_windows_that_tma_cannot_walk_over_are_refused_in_words():
    target = cuda_target("sm_90a")
    for changes, words in (
        ({"c": 24}, "needs whole 64 bytes"),
        ({"layout": "NCHW"}, "no neighbours in the depth"),
        ({"stride": 9, "h": 30, "w": 30}, "allowed: 1 to 8"),
        ({"padding": 130}, "too far"),
        ({"groups": 2, "c": 64}, "2 products"),
    ):
        made = workload("conv2d", **{**WINDOWS, "layout": "NHWC", "dtype": "float16", **changes})
        assert words in (Hopper.refuses(made, target) or ""), changes


LAYER = {"n": 32, "c": 64, "h": 56, "w": 56, "o": 64, "r": 3, "s": 3, "padding": 1}


@pytest.mark.parametrize("name", ["sm_80", "sm_90a"])
def test_kernels_copy_16_bytes_at_a_time_and_spill_nothing(name):
    target = cuda_target(name)
    made = workload("conv2d", **LAYER, dtype="float16", layout="NHWC", epilogue="relu(x + bias[o])")
    space = Space(made, target, [Mma(made, target)])
    schedule = Schedule("mma", tuple((MMA | LARGE | {"depth": 64}).items()))
    assert space.why_not(schedule) is None
    kernel, builder = space.lower(schedule), NvrtcBuilder(target)
    [built] = builder.build([Candidate(Job("test", made, target), schedule, kernel)])
    assert built.info["spill_bytes"] == 0
    found = count(read_cubin(built.binary.read_bytes(), kernel.call.entry).code)
    builder.close()
    assert found["LDGSTS"] == found["LDGSTS.128"] > 0
    assert found["STG"] == found["STG.128"] > 0


def test_kernels_whose_windows_tma_walks_over_compile_without_spills():
    target = cuda_target("sm_90a")
    made = workload("conv2d", **LAYER, dtype="float16", layout="NHWC", epilogue="relu(x + bias[o])")
    space = Space(made, target, [Hopper(made, target)])
    builder = NvrtcBuilder(target)
    job, schedules = Job("test", made, target), draw(space, 3, 1)
    for built in builder.build([Candidate(job, s, space.lower(s)) for s in schedules]):
        assert built.error_kind is None, built.error_text
        assert built.info["spill_bytes"] == 0
    builder.close()


def test_quantities_are_complete_and_possible():
    for space in problems(6, seed=1):
        quantities = checked_quantities(space, seed=0, schedules=100)
        assert (quantities["flops"] >= quantities["useful_flops"]).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x: float16[8,9]; y[i,j] = sum[k](x[i,k] * x[j,k+1])", "both factors are x"),
        ("x: float16[8,8]; y[i,j] = sum[k](inside(x[i-1,k], 1) * w[k,j])", "beyond its borders"),
        ("x: int8[8,9]; y[i,j] = sum[k](x[i,2*k] * w[k,j]); w: int8", "int8 is summed in float32"),
    ],
)
def test_what_cannot_be_gathered_is_refused_in_words(text, words):
    extents = {"i": 8, "j": 8, "k": 4 if "int8" in text else 8}
    made = workload(text, **extents, dtype="float16")
    assert words in (Mma.refuses(made, cuda_target("sm_90a")) or "")
