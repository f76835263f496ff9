"""Kernels of row reductions and maps on the emulator: hard cases, planted bugs, random ones."""

from __future__ import annotations

import numpy as np
import pytest

from measure.cuda.compilation import compile_cubin
from spaces.cuda.intrinsics import device_text
from spaces.cuda.rows.template import CudaRows
from spaces.cuda.target import cuda_target
from spaces.language import program
from spaces.operators import workload
from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload
from tests.measure.cuda.emulator.planting import Case, check_right
from tests.measure.cuda.kernels.kernel_contract import KernelContract

H200 = cuda_target("sm_90a")
WARPS = {
    "vector": 4,
    "lanes": "columns",
    "row_threads": 32,
    "block_rows": 2,
    "thread_rows": 1,
    "cluster": 1,
    "hold": "registers",
    "unpack": "once",
    "passes": "plain",
    "ahead": 0,
    "unroll": 1,
    "loads": "cached",
    "stores": "cached",
    "residency": 1,
    "grid": "tiles",
    "stages": 1,
    "common": "again",
    "spared": 0,
}
BLOCK = {**WARPS, "row_threads": 64, "block_rows": 1}
CLUSTER = {**BLOCK, "cluster": 2, "vector": 1}
ACROSS = {**WARPS, "lanes": "rows", "vector": 1, "row_threads": 8, "block_rows": 16}
ACROSS |= {"hold": "memory"}
AHEAD = {"hold": "shared", "grid": "persistent", "stages": 2}
KEPT = {"hold": "registers", "grid": "persistent", "common": "kept"}
ONLINE = {"passes": "online"}
AGAIN = {"hold": "memory", "unroll": 2}
MAP = {**WARPS, "hold": "memory", "unroll": 2, "row_threads": 64, "block_rows": 1}


def case(work: Workload, values: dict) -> Case:
    """The workload, and the kernel of a schedule."""
    template = CudaRows(work, H200)
    return work, template.lower(Schedule("rows", tuple(values.items())))


def named(operator: str, values: dict, **parameters) -> Case:
    return case(workload(operator, **parameters), values)


def own(text: str, values: dict, **extents) -> Case:
    found = program(text, dtype="float32", **extents)
    return case(Computation("program", (), found, "no product"), values)


def right_cases() -> dict[str, Case]:
    half, brain = {"dtype": "float16"}, {"dtype": "bfloat16"}
    single = {"vector": 1}
    lone = {**WARPS, "vector": 1, "row_threads": 1, "block_rows": 32}
    few = {**WARPS, "row_threads": 8, "block_rows": 4, "vector": 2}
    loop = {"grid": "persistent"}
    all_ = {"outputs": "y,mean,rstd"}
    return {
        "softmax, a tail": named("softmax", WARPS, r=5, c=260, **brain),
        "softmax, a prime": named("softmax", BLOCK | single | ONLINE, r=3, c=131),
        "one element": named("rmsnorm", lone, r=1, c=1),
        "softmax, read again": named("softmax", BLOCK | ONLINE | AGAIN, r=3, c=1040),
        "softmax, two rows at once": named(
            "softmax", WARPS | AGAIN | {"thread_rows": 2, "unpack": "once"}, r=7, c=264, **half
        ),
        "softmax, copied": named("softmax", BLOCK | {"hold": "shared"}, r=3, c=520),
        "softmax, unpacked again": named(
            "softmax", WARPS | {"unpack": "again"}, r=3, c=256, **half
        ),
        "softmax, many rows": named("softmax", BLOCK | loop | ONLINE, r=300, c=256),
        "softmax, a cluster": named("softmax", CLUSTER, r=3, c=300),
        "softmax, two rows at once in a cluster": named(
            "softmax", CLUSTER | ONLINE | {"thread_rows": 2}, r=5, c=300
        ),
        "layernorm, four rows at once in a cluster": named(
            "layernorm", CLUSTER | {"thread_rows": 4, "hold": "shared"}, r=6, c=300, **all_
        ),
        "a single pass, copied": named(
            "logsumexp", BLOCK | ONLINE | {"hold": "shared"}, r=7, c=520
        ),
        "layernorm, weights kept": named("layernorm", BLOCK | KEPT, r=300, c=260, **half),
        "layernorm, weights kept, ahead, a cluster": named(
            "layernorm", CLUSTER | KEPT | ONLINE | {"stages": 3}, r=450, c=140
        ),
        "layernorm, weights kept for one tile": named(
            "layernorm", CLUSTER | {"hold": "shared", "common": "kept"}, r=5, c=500
        ),
        "layernorm, a pass in steps": named(
            "layernorm", BLOCK | ONLINE | {"hold": "shared", "unroll": 2}, r=3, c=1024, **all_
        ),
        "layernorm, a pass in steps, weights kept": named(
            "layernorm", CLUSTER | KEPT | AHEAD | ONLINE | {"unroll": 2}, r=150, c=768
        ),
        "fewer clusters stay": named("softmax", CLUSTER | loop | {"spared": 3}, r=150, c=140),
        "rmsnorm, weights kept beside shared memory": named(
            "rmsnorm", CLUSTER | KEPT | AHEAD | {"unroll": 2, "thread_rows": 2}, r=450, c=240
        ),
        "softmax, a cluster's many rows": named("softmax", CLUSTER | ONLINE | loop, r=150, c=140),
        "softmax, copied ahead": named("softmax", BLOCK | AHEAD, r=300, c=520, **half),
        "layernorm, copied ahead": named("layernorm", CLUSTER | AHEAD, r=150, c=140),
        "a single pass, copied far ahead": named(
            "logsumexp", BLOCK | AHEAD | ONLINE | {"stages": 4}, r=700, c=520, **half
        ),
        "a cluster, copied far ahead": named(
            "softmax", CLUSTER | AHEAD | {"stages": 3}, r=450, c=140
        ),
        "ahead of registers": named(
            "softmax", BLOCK | AHEAD | {"hold": "registers"}, r=300, c=520, **half
        ),
        "far ahead of registers, a cluster": named(
            "layernorm", CLUSTER | AHEAD | {"hold": "registers", "stages": 4}, r=450, c=140
        ),
        "a single pass, ahead of registers": named(
            "logsumexp", WARPS | AHEAD | ONLINE | {"hold": "registers", "stages": 3}, r=900, c=260
        ),
        "places in a cluster of 16": own(
            "y[r] = argmax[c](floor(x[r, c] * 2))", CLUSTER | {"cluster": 16}, r=3, c=1100
        ),
        "layernorm": named("layernorm", few | ONLINE, r=9, c=130, **half),
        "layernorm, all outputs": named("layernorm", BLOCK | {"ahead": 1}, r=3, c=516, **all_),
        "layernorm, read again": named("layernorm", few | ONLINE | AGAIN, r=5, c=94, **all_),
        "rmsnorm": named("rmsnorm", BLOCK | {"stores": "stream", "loads": "stream"}, r=3, c=768),
        "labels": named("cross_entropy", WARPS | single | ONLINE | AGAIN, r=5, c=101),
        "places along two axes": named(
            "argmax", few | {"hold": "memory"}, shape="4x5x30", over="0,2"
        ),
        "sums of columns": named(
            "sum", WARPS | AGAIN | single | {"row_threads": 1, "block_rows": 32}, **_shape("37x50")
        ),
        "sums of columns by many": named("mean", ACROSS | AGAIN, **_shape("37x50")),
        "places in columns": named("argmax", ACROSS | {"grid": "persistent"}, **_shape("40x3000")),
        "norms of columns": own(
            "y[r, c] = softmax[r](x[r, c]) * var[r](x[r, c])", ACROSS | ONLINE | AGAIN, r=37, c=50
        ),
        "values of axes": own(
            "y[r] = sum[c](select((c + 2 * r) % 3 == 0, x[r, c], 0) * ((c - 50) // 7)) + r * 70000",
            few | {"hold": "memory"},
            **{"r": 5, "c": 96},
        ),
        "a result that the next pass alone reads": named(
            "rmsnorm_matmul", few | {"hold": "memory", "vector": 1}, m=3, n=5, k=40
        ),
        "a map": named("swiglu", MAP | {"vector": 8}, r=7, c=336, **brain),
        "a map of odd extents": named("swiglu", MAP | single, r=7, c=33, **half),
        "rows of a table": named("embedding", few | {"hold": "memory"}, t=20, d=64, words=77),
        "a transposed map": own(
            "y[m, n] = relu(x[n, m]) * s[n] + exp(b[m]) * n",
            few | {"hold": "memory", "vector": 1},
            m=20,
            n=9,
        ),
        "float64": own(
            "x: float64[r, c]; y: float64[r]; y[r] = sum[c](x[r, c] * x[r, c])",
            WARPS | {"vector": 2, "hold": "memory"},
            r=3,
            c=100,
        ),
    }


def _shape(shape: str) -> dict[str, str]:
    return {"shape": shape, "over": "0"}


CASES = right_cases()

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
    "a part is left out": ("across", r"q < 8", "q < 7"),
    "no barrier between parts": ("across", r"tw::sync_block\(\);", ""),
    "the last of equals": ("places", r"(tw_argmax\(s0[^;]*), ([^,;]*)\);", r"\1, -(\2));"),
}
BROKEN = {
    "softmax": named("softmax", BLOCK, r=3, c=256),
    "online": named("softmax", WARPS | ONLINE, r=3, c=256),
    "counted": named("layernorm", WARPS | ONLINE, r=3, c=256),
    "counted, steps": named(
        "layernorm", WARPS | ONLINE | {"hold": "shared", "unroll": 2}, r=3, c=512
    ),
    "again": named("softmax", WARPS | ONLINE | AGAIN, r=3, c=1024),
    "loop": named("rmsnorm", BLOCK | {"grid": "persistent"}, r=300, c=256),
    "tail": named("softmax", BLOCK | {"block_rows": 2, "row_threads": 32}, r=5, c=260),
    "norm": named("rmsnorm", BLOCK, r=3, c=256),
    "norm, tail": named("rmsnorm", WARPS, r=3, c=260),
    "norm, cluster": named("rmsnorm", CLUSTER, r=3, c=256),
    "across": named("mean", ACROSS, shape="37x50", over="0"),
    "ahead": named("rmsnorm", BLOCK | AHEAD, r=300, c=256),
    "copied": named("softmax", BLOCK | {"hold": "shared"}, r=3, c=256),
    "to registers": named(
        "rmsnorm", BLOCK | AHEAD | {"hold": "registers", "stages": 3}, r=600, c=256
    ),
    "cluster": named("softmax", CLUSTER, r=3, c=256),
    "cluster, rows": named("rmsnorm", CLUSTER | {"thread_rows": 2}, r=4, c=256),
    "kept": named("rmsnorm", BLOCK | KEPT, r=300, c=512),
    "cluster, loop": named("rmsnorm", CLUSTER | {"grid": "persistent"}, r=400, c=256),
    "places": own("y[r] = argmax[c](floor(x[r, c] * 2))", WARPS | {"hold": "memory"}, r=2, c=256),
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
    cases = sampled(1, seed=1)
    emulator.build([kernel for _, kernel in cases])
    for drawn in cases:
        check_right(emulator, drawn)


@pytest.mark.slow
def test_many_random_schedules_are_right(emulator):
    cases = sampled(27, seed=2)
    emulator.build([kernel for _, kernel in cases])
    for drawn in cases:
        check_right(emulator, drawn)


def test_kernels_compile_for_the_gpu_without_spills():
    large = workload("layernorm", r=4096, c=4096, dtype="bfloat16")
    for values in (
        BLOCK | {"vector": 8, "row_threads": 256, "ahead": 1},
        BLOCK | {"vector": 8, "row_threads": 256, "hold": "shared"} | ONLINE,
        CLUSTER | {"vector": 8, "row_threads": 128},
    ):
        _, kernel = case(large, values)
        built = compile_cubin(
            device_text(kernel.source.text) + kernel.source.text, "sm_90a", 120, lambda: False
        )
        assert built.cubin is not None, built.log[:2000]
        assert " 0 bytes spill stores" in built.log


@pytest.mark.parametrize(
    ("dtype", "known"), [("bfloat16", True), ("float16", True), ("float32", False)]
)
def test_powers_come_from_the_special_function_unit_where_results_are_short(dtype, known):
    _, kernel = named("softmax", WARPS, r=8, c=128, dtype=dtype)
    assert ("tw::exp2_approx" in kernel.source.text) == known


def test_short_results_of_large_powers_are_right(emulator):
    text = "x: {0}; y: {0}; s[r] = sum[c](exp(40 * x[r, c])); y[r, c] = exp(40 * x[r, c]) / s[r]"
    check_right(emulator, own(text.format("bfloat16"), WARPS, r=6, c=256))
