"""Kernels of row reductions and maps on the emulator: hard cases, planted bugs, random ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_all_right, check_right
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.measure.cuda.kernels.rows_cases import (
    ACROSS,
    AGAIN,
    AHEAD,
    BLOCK,
    CASES,
    CLUSTER,
    H200,
    KEPT,
    ONLINE,
    WARPS,
    case,
    named,
    own,
)
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

ACROSS |= {"row_storage": "memory"}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "a lane is left out": ("norm", r"tw::shuffle_xor\(s0\[k\], 4\)", "s0[k]"),
    "lanes merge twice": ("online", r"tw::shuffle_xor\(s1\[k\], 8\)", "tw::shuffle_xor(s1[k], 4)"),
    "a lane's sum stays as it was": ("online", r"b1 \* tw_exp\([^;]*\);", "b1;"),
    "lanes of fewer elements than they have": ("counted", r"b0 / 16\.0f", "b0 / 8.0f"),
    "a step of fewer elements than it has": (
        "counted, steps",
        r"\(step \+ 1\) \* 8\.0f",
        "(step + 1) * 4.0f",
    ),
    "no correction along the row": ("again", r"if \(step\)", "if (false)"),
    "no barrier between warps": ("softmax", r"tw::sync_block\(\);", ""),
    "a warp is left out": ("norm", r"threadIdx\.x % 2\) \* 8", "0) * 8"),
    "no barrier before the next row": ("loop", r"tw::sync_block\(\);(?=\s*\}\s*\}\s*$)", ""),
    "reads beyond the row": ("tail", r"if \(u < 2 \|\| column < 260\)", "if (true)"),
    "leaves the tail out": ("norm, tail", r"(?s)(float s0.*?) \|\| column < 260", r"\1"),
    "reads rows that are not there": ("tail", r"\? row0 \+ k \* 2 : 4", "? row0 + k * 2 : 5"),
    "waits for no copy to registers": ("to registers", r"tw::cp_async_wait<1>\(\);", ""),
    "copies over what registers lack": (
        "to registers",
        r"(?s)(?<=int buffer = 0;)(.*?)\+ \(\(buffer \+ 2\) % 2\)",
        r"\1+ ((buffer + 1) % 2)",
    ),
    "does not wait for copies": ("copied", r"tw::cp_async_wait<0>\(\);", ""),
    "waits for the tile after the next": (
        "ahead",
        r"(?s)tw::cp_async_wait<1>\(\);",
        "tw::cp_async_wait<2>();",
    ),
    "copies over what is in work": ("ahead", r"\(\(buffer \+ 1\) % 2\)", "(buffer)"),
    "reads labels of its own tile ahead": (
        "labels ahead",
        r"(later1\[k\];\n(?:.*\n)*?.*)tile \+ 132",
        r"\1tile + 0",
    ),
    "sends before others have begun": ("cluster", r"tw::cluster_wait\(\);", "tw::sync_block();"),
    "does not wait for other blocks": ("cluster", r"tw::mbarrier_wait_cluster\([^;]*;", ""),
    "waits for less than others send": (
        "cluster",
        r"arrive_expect\(done, 32",
        "arrive_expect(done, 16",
    ),
    "sends the next row over the last": ("cluster, loop", r" \+ 48 \* \(round & 1\)", ""),
    "waits for the round before": ("cluster, loop", r"\(round >> 1\) & 1", "(round >> 1) + 1 & 1"),
    "sends the second row to the first's place": ("cluster, rows", r"sent\[1\]", "sent[0]"),
    "keeps one vector of the weights": (
        "kept",
        r"load_global<4>\(x1\[0\] \+ u \* 4",
        "load_global<4>(x1[0]",
    ),
    "a block of the cluster is left out": ("norm, cluster", r"x % 2 \* 16", "x % 1 * 16"),
    "a part is left out": ("across", r"\(part \^ 4\)", "(part ^ 0)"),
    "no barrier between parts": ("across", r"tw::sync_block\(\);", ""),
    "the last of equals": ("places", r"(tw_argmax\(s0[^;]*), ([^,;]*)\);", r"\1, -(\2));"),
}
BROKEN = {
    "softmax": named("softmax", BLOCK, r=3, c=256),
    "online": named("softmax", WARPS | ONLINE, r=3, c=256),
    "counted": named("layernorm", WARPS | ONLINE, r=3, c=256),
    "counted, steps": named(
        "layernorm", WARPS | ONLINE | {"row_storage": "shared", "unroll": 2}, r=3, c=512
    ),
    "again": named("softmax", WARPS | ONLINE | AGAIN, r=3, c=1024),
    "loop": named("rmsnorm", BLOCK | {"tile_scheduler": "persistent"}, r=300, c=256),
    "tail": named("softmax", BLOCK | {"block_rows": 2, "row_threads": 32}, r=5, c=260),
    "norm": named("rmsnorm", BLOCK, r=3, c=256),
    "norm, tail": named("rmsnorm", WARPS, r=3, c=260),
    "norm, cluster": named("rmsnorm", CLUSTER, r=3, c=256),
    "across": named("mean", ACROSS, shape="37x50", over="0"),
    "ahead": named("rmsnorm", BLOCK | AHEAD, r=300, c=256),
    "labels ahead": named("cross_entropy", BLOCK | AHEAD, r=300, c=256),
    "copied": named("softmax", BLOCK | {"row_storage": "shared"}, r=3, c=256),
    "to registers": named(
        "rmsnorm", BLOCK | AHEAD | {"row_storage": "registers", "stages": 3}, r=600, c=256
    ),
    "cluster": named("softmax", CLUSTER, r=3, c=256),
    "cluster, rows": named("rmsnorm", CLUSTER | {"thread_rows": 2}, r=4, c=256),
    "kept": named("rmsnorm", BLOCK | KEPT, r=300, c=512),
    "cluster, loop": named("rmsnorm", CLUSTER | {"tile_scheduler": "persistent"}, r=400, c=256),
    "places": own(
        "y[r] = argmax[c](floor(x[r, c] * 2))", WARPS | {"row_storage": "memory"}, r=2, c=256
    ),
}


class TestRowsKernels(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


SMALL = {
    "softmax": [{"r": 3, "c": 72, "dtype": "bfloat16"}, {"r": 5, "c": 37}],
    "log_softmax": [{"r": 3, "c": 64, "dtype": "float16"}],
    "logsumexp": [{"r": 9, "c": 300}],
    "cross_entropy": [{"r": 5, "c": 129}],
    "layernorm": [{"r": 3, "c": 200, "outputs": "y,mean,rstd"}],
    "rmsnorm": [{"r": 3, "c": 1024, "dtype": "bfloat16"}],
    "mean": [{"shape": "4x5x16", "over": "1,2"}, {"shape": "16x40", "over": "0"}],
    "argmax": [{"shape": "5x64", "over": "1"}],
    "swiglu": [{"r": 13, "c": 48, "dtype": "bfloat16"}],
}


def sampled(count: int, seed: int) -> list[Case]:
    """Random schedules of every small problem, ``count`` of each."""
    generator = np.random.default_rng(seed)
    found = []
    for operator, problems in SMALL.items():
        for parameters in problems:
            work = workload(operator, **parameters)
            space = space_for(work, H200)
            for row in space.sample(generator, count):
                found.append((work, space.lower(space.schedule(row))))
    return found


def test_random_schedules_are_right(emulator):
    check_all_right(emulator, sampled(1, seed=1))


@pytest.mark.slow
def test_many_random_schedules_are_right(emulator):
    check_all_right(emulator, sampled(27, seed=2))


def test_kernels_compile_for_the_gpu_without_spills():
    large = workload("layernorm", r=4096, c=4096, dtype="bfloat16")
    for values in (
        BLOCK | {"vector": 8, "row_threads": 256, "prefetch": 1},
        BLOCK | {"vector": 8, "row_threads": 256, "row_storage": "shared"} | ONLINE,
        CLUSTER | {"vector": 8, "row_threads": 128},
    ):
        _, kernel = case(large, values)
        built = compile_cubin(
            device_text(kernel.source.text) + kernel.source.text, "sm_90a", 120, lambda: False
        )
        assert built.cubin is not None, built.log[:2000]
        assert " 0 bytes spill stores" in built.log


@pytest.mark.parametrize(
    ("values", "copied"),
    [
        (BLOCK | {"row_threads": 256}, False),
        (BLOCK | ONLINE | {"row_threads": 256, "row_storage": "shared"}, True),
        (CLUSTER | {"row_threads": 128}, False),
    ],
    ids=["registers", "shared memory", "cluster"],
)
def test_rows_are_moved_16_bytes_at_a_time(values, copied):
    large = workload("softmax", r=4096, c=8192, dtype="bfloat16")
    found = instructions("sm_90a", case(large, values | {"vector": 8}))
    moved = "LDGSTS" if copied else "LDG"
    assert found[moved] == found[f"{moved}.128"] > 0
    assert found["STG"] == found["STG.128"] > 0
    assert found["LDL"] == found["STL"] == 0
    assert found["MUFU"] > 0


@pytest.mark.parametrize(
    ("dtype", "known"), [("bfloat16", True), ("float16", True), ("float32", False)]
)
def test_powers_come_from_the_special_function_unit_where_results_are_short(dtype, known):
    _, kernel = named("softmax", WARPS, r=8, c=128, dtype=dtype)
    assert ("tw::exp2_approx" in kernel.source.text) == known


def test_short_results_of_large_powers_are_right(emulator):
    text = "x: {0}; y: {0}; s[r] = sum[c](exp(40 * x[r, c])); y[r, c] = exp(40 * x[r, c]) / s[r]"
    check_right(emulator, own(text.format("bfloat16"), WARPS, r=6, c=256))
