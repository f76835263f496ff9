"""Right kernels of row reductions and maps, hard cases of all kinds."""

from __future__ import annotations

from tests.measure.cuda.emulator.planting import Case, deferred
from tilewright.spaces.cuda.rows.template import CudaRows
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
WARPS = {
    "vector": 4,
    "lanes": "columns",
    "row_threads": 32,
    "block_rows": 2,
    "thread_rows": 1,
    "cluster": 1,
    "row_storage": "registers",
    "convert": "once",
    "passes": "plain",
    "prefetch": 0,
    "unroll": 1,
    "loads": "cached",
    "stores": "cached",
    "blocks_per_sm": 1,
    "tile_scheduler": "tiles",
    "stages": 1,
    "row_invariants": "again",
    "idle_clusters": 0,
}
BLOCK = {**WARPS, "row_threads": 64, "block_rows": 1}
CLUSTER = {**BLOCK, "cluster": 2, "vector": 1}
ACROSS = {**WARPS, "lanes": "rows", "vector": 1, "row_threads": 8, "block_rows": 16}
AHEAD = {"row_storage": "shared", "tile_scheduler": "persistent", "stages": 2}
KEPT = {"row_storage": "registers", "tile_scheduler": "persistent", "row_invariants": "kept"}
ONLINE = {"passes": "online"}
AGAIN = {"row_storage": "memory", "unroll": 2}
MAP = {**WARPS, "row_storage": "memory", "unroll": 2, "row_threads": 64, "block_rows": 1}


@deferred
def case(work: Workload, values: dict) -> Case:
    """The workload, and the kernel of a schedule."""
    template = CudaRows(work, H200)
    return work, template.lower(Schedule("rows", tuple(values.items())))


@deferred
def named(operator: str, values: dict, **parameters) -> Case:
    return case(workload(operator, **parameters), values)


@deferred
def own(text: str, values: dict, **extents) -> Case:
    found = program(text, dtype="float32", **extents)
    return case(Workload("program", (), found, "no product"), values)


def right_cases() -> dict[str, Case]:
    half, brain = {"dtype": "float16"}, {"dtype": "bfloat16"}
    single = {"vector": 1}
    lone = {**WARPS, "vector": 1, "row_threads": 1, "block_rows": 32}
    few = {**WARPS, "row_threads": 8, "block_rows": 4, "vector": 2}
    loop = {"tile_scheduler": "persistent"}
    all_ = {"outputs": "y,mean,rstd"}
    return {
        "softmax, a tail": named("softmax", WARPS, r=5, c=260, **brain),
        "softmax, a prime": named("softmax", BLOCK | single | ONLINE, r=3, c=131),
        "one element": named("rmsnorm", lone, r=1, c=1),
        "softmax, read again": named("softmax", BLOCK | ONLINE | AGAIN, r=3, c=1040),
        "softmax, two rows at once": named(
            "softmax", WARPS | AGAIN | {"thread_rows": 2, "convert": "once"}, r=7, c=264, **half
        ),
        "softmax, copied": named("softmax", BLOCK | {"row_storage": "shared"}, r=3, c=520),
        "softmax, unpacked again": named(
            "softmax", WARPS | {"convert": "again"}, r=3, c=256, **half
        ),
        "softmax, many rows": named("softmax", BLOCK | loop | ONLINE, r=300, c=256),
        "softmax, a cluster": named("softmax", CLUSTER, r=3, c=300),
        "softmax, two rows at once in a cluster": named(
            "softmax", CLUSTER | ONLINE | {"thread_rows": 2}, r=5, c=300
        ),
        "layernorm, four rows at once in a cluster": named(
            "layernorm", CLUSTER | {"thread_rows": 4, "row_storage": "shared"}, r=6, c=300, **all_
        ),
        "a single pass, copied": named(
            "logsumexp", BLOCK | ONLINE | {"row_storage": "shared"}, r=7, c=520
        ),
        "layernorm, weights kept": named("layernorm", BLOCK | KEPT, r=300, c=260, **half),
        "layernorm, weights kept, ahead, a cluster": named(
            "layernorm", CLUSTER | KEPT | ONLINE | {"stages": 3}, r=450, c=140
        ),
        "layernorm, weights kept for one tile": named(
            "layernorm", CLUSTER | {"row_storage": "shared", "row_invariants": "kept"}, r=5, c=500
        ),
        "layernorm, a pass in steps": named(
            "layernorm",
            BLOCK | ONLINE | {"row_storage": "shared", "unroll": 2},
            r=3,
            c=1024,
            **all_,
        ),
        "layernorm, a pass in steps, weights kept": named(
            "layernorm", CLUSTER | KEPT | AHEAD | ONLINE | {"unroll": 2}, r=150, c=768
        ),
        "fewer clusters stay": named(
            "softmax", CLUSTER | loop | {"idle_clusters": 3}, r=150, c=140
        ),
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
            "softmax", BLOCK | AHEAD | {"row_storage": "registers"}, r=300, c=520, **half
        ),
        "far ahead of registers, a cluster": named(
            "layernorm", CLUSTER | AHEAD | {"row_storage": "registers", "stages": 4}, r=450, c=140
        ),
        "a single pass, ahead of registers": named(
            "logsumexp",
            WARPS | AHEAD | ONLINE | {"row_storage": "registers", "stages": 3},
            r=900,
            c=260,
        ),
        "places in a cluster of 16": own(
            "y[r] = argmax[c](floor(x[r, c] * 2))", CLUSTER | {"cluster": 16}, r=3, c=1100
        ),
        "layernorm": named("layernorm", few | ONLINE, r=9, c=130, **half),
        "layernorm, all outputs": named("layernorm", BLOCK | {"prefetch": 1}, r=3, c=516, **all_),
        "layernorm, read again": named("layernorm", few | ONLINE | AGAIN, r=5, c=94, **all_),
        "rmsnorm": named("rmsnorm", BLOCK | {"stores": "stream", "loads": "stream"}, r=3, c=768),
        "labels": named("cross_entropy", WARPS | single | ONLINE | AGAIN, r=5, c=101),
        "labels, read ahead": named("cross_entropy", BLOCK | AHEAD | single, r=300, c=101),
        "labels, read ahead of registers": named(
            "cross_entropy",
            WARPS | AHEAD | single | {"hold": "registers", "stages": 3},
            r=900,
            c=72,
        ),
        "places along two axes": named(
            "argmax", few | {"row_storage": "memory"}, shape="4x5x30", over="0,2"
        ),
        "sums of columns": named(
            "sum", WARPS | AGAIN | single | {"row_threads": 1, "block_rows": 32}, **_shape("37x50")
        ),
        "sums of columns by many": named("mean", ACROSS | AGAIN, **_shape("37x50")),
        "places in columns": named(
            "argmax", ACROSS | {"tile_scheduler": "persistent"}, **_shape("40x3000")
        ),
        "norms of columns": own(
            "y[r, c] = softmax[r](x[r, c]) * var[r](x[r, c])", ACROSS | ONLINE | AGAIN, r=37, c=50
        ),
        "values of axes": own(
            "y[r] = sum[c](select((c + 2 * r) % 3 == 0, x[r, c], 0) * ((c - 50) // 7)) + r * 70000",
            few | {"row_storage": "memory"},
            **{"r": 5, "c": 96},
        ),
        "a result that the next pass alone reads": named(
            "rmsnorm_matmul", few | {"row_storage": "memory", "vector": 1}, m=3, n=5, k=40
        ),
        "a map": named("swiglu", MAP | {"vector": 8}, r=7, c=336, **brain),
        "a map of odd extents": named("swiglu", MAP | single, r=7, c=33, **half),
        "rows of a table": named(
            "embedding", few | {"row_storage": "memory"}, t=20, d=64, words=77
        ),
        "a transposed map": own(
            "y[m, n] = relu(x[n, m]) * s[n] + exp(b[m]) * n",
            few | {"row_storage": "memory", "vector": 1},
            m=20,
            n=9,
        ),
        "float64": own(
            "x: float64[r, c]; y: float64[r]; y[r] = sum[c](x[r, c] * x[r, c])",
            WARPS | {"vector": 2, "row_storage": "memory"},
            r=3,
            c=100,
        ),
    }


def _shape(shape: str) -> dict[str, str]:
    return {"shape": shape, "over": "0"}


CASES = right_cases()
