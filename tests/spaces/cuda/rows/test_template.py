"""The space of row reductions and maps on a GPU: what it holds, and what it refuses in words."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.cuda.rows.template import CudaRows
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.derivation.gradients.gradient import gradient
from tilewright.spaces.language import program
from tilewright.spaces.named import operator
from tilewright.spaces.operators import workload
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")


def norm_gradient(r: int, c: int) -> str:
    """The program of a layernorm's gradient by all its operands."""
    return gradient(operator("layernorm", r=r, c=c), wrt=("x", "weight", "bias")).text


WORKLOADS = {
    "softmax": ("softmax", {"r": 8192, "c": 8192, "dtype": "bfloat16"}),
    "long rows": ("softmax", {"r": 512, "c": 131072, "dtype": "bfloat16"}),
    "short rows": ("softmax", {"r": 65536, "c": 256}),
    "primes": ("softmax", {"r": 7, "c": 1031}),
    "ones": ("softmax", {"r": 1, "c": 1}),
    "one row": ("softmax", {"r": 1, "c": 262144}),
    "few long rows": ("softmax", {"r": 64, "c": 262144, "dtype": "bfloat16"}),
    "layernorm": ("layernorm", {"r": 4096, "c": 1024, "outputs": "y,mean,rstd"}),
    "labels": ("cross_entropy", {"r": 4096, "c": 32000, "dtype": "bfloat16"}),
    "map": ("swiglu", {"r": 4096, "c": 11008, "dtype": "bfloat16"}),
    "small map": ("swiglu", {"r": 3, "c": 5}),
    "columns": ("sum", {"shape": "4096x1024", "over": "0"}),
    "places": ("argmax", {"shape": "64x128x256", "over": "0,2"}),
    "scaled columns": ("y[r,c] = softmax[r](x[r,c] * s[r])", {"r": 64, "c": 65}),
    "column sums": (norm_gradient(4096, 4096), {}),
    "wide column sums": (norm_gradient(512, 8192), {}),
    "column sums of many rows": (norm_gradient(2**20, 64), {}),
    "pairs": ("y[r] = logsumexp[c,g](x[r,c] + v[g])", {"r": 64, "c": 64, "g": 4}),
}


def space(name: str, target: CudaTarget = H200) -> Space:
    given, parameters = WORKLOADS[name]
    work = workload(given, **parameters)
    return Space(work, target, [CudaRows(work, target)])


@pytest.mark.parametrize("name", WORKLOADS)
def test_samples_keep_all_rules_and_have_all_quantities(name):
    all_ = space(name)
    population = all_.sample(np.random.default_rng(0), 64)
    assert len(population) == 64
    for row in population:
        assert all_.why_not(all_.schedule(row)) is None
    quantities = all_.quantities(population)
    assert set(quantities) >= set(QUANTITIES)
    assert all(np.isfinite(quantities[q]).all() and (quantities[q] >= 0).all() for q in QUANTITIES)


@pytest.mark.parametrize("name", ["long rows", "layernorm", "map"])
def test_lowering_is_deterministic_and_within_the_estimate_of_shared_memory(name):
    all_ = space(name)
    population = all_.sample(np.random.default_rng(1), 24)
    footprints = all_.quantities(population)["near_footprint"]
    for row, footprint in zip(population, footprints, strict=True):
        schedule = all_.schedule(row)
        kernel = all_.lower(schedule)
        assert kernel == all_.lower(schedule)
        assert kernel.call.launches[0].shared_bytes <= footprint
        assert kernel.call.launches[0].shared_bytes <= H200.shared_per_block


@pytest.mark.parametrize(("rows", "kind"), [(100_000, "i64"), (1_000, "int")])
def test_elements_far_along_a_column_are_counted_in_64_bits(rows, kind):
    work = workload("sum", shape=f"{rows}x50000", over="0")
    all_ = Space(work, H200, [CudaRows(work, H200)])
    kernel = all_.lower(all_.schedule(all_.sample(np.random.default_rng(0), 1)[0]))
    assert f"const {kind} column = " in kernel.source.body


PLAIN = {
    "vector": 8, "lanes": "columns", "row_threads": 32, "block_rows": 8, "thread_rows": 1,
    "cluster": 1, "row_storage": "shared", "convert": "once", "passes": "plain", "prefetch": 0,
    "unroll": 4, "loads": "cached", "stores": "cached", "blocks_per_sm": 3,
    "tile_scheduler": "persistent", "stages": 1, "row_invariants": "again", "idle_clusters": 0,
}  # fmt: skip


def body(operator: str, values: dict, **parameters) -> str:
    work = workload(operator, dtype="bfloat16", **parameters)
    return CudaRows(work, H200).lower(Schedule("rows", tuple(values.items()))).source.body


@pytest.mark.parametrize("hold", ["shared", "registers"])
def test_no_tile_that_was_copied_ahead_waits_for_what_is_the_same_along_its_rows(hold):
    """What a layernorm's elements are shifted by turns into a number a tile after it was read."""
    values = PLAIN | {
        "row_storage": hold,
        "stages": 3,
        "block_rows": 1,
        "row_threads": 64,
        "unroll": 1,
    }
    text = body("layernorm", values, r=8192, c=512)
    assert "later1[k] = tw::load_global(in0" in text
    assert "tw::to_float(tw::load_global(in0" not in text


@pytest.mark.parametrize(("columns", "many"), [(4096, False), (65536, True)])
def test_few_blocks_of_a_long_sum_are_added_without_what_rounding_lost(columns, many):
    text = body("rmsnorm", PLAIN | {"row_storage": "memory"}, r=4096, c=columns)
    assert "sum0[k]" in text
    assert ("excess0[k]" in text) == many


def test_programs_that_differ_in_names_alone_have_one_space_and_one_kernel():
    first = program("y[r, c] = softmax[c](x[r, c])", dtype="bfloat16", r=64, c=512)
    second = program("a[i, j] = softmax[j](if_[i, j])", dtype="bfloat16", i=64, j=512)
    works = [Workload("program", (), text, "no product") for text in (first, second)]
    spaces = [Space(work, H200, [CudaRows(work, H200)]) for work in works]
    populations = [s.sample(np.random.default_rng(3), 8) for s in spaces]
    assert np.array_equal(*populations)
    first_rows = [population[0] for population in populations]
    kernels = [s.lower(s.schedule(row)) for s, row in zip(spaces, first_rows, strict=True)]
    texts = [kernel.source.text.replace(kernel.call.entry, "entry") for kernel in kernels]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("softmax", {"row_threads": 1}, "memory gives 64 at a time"),
        ("softmax", {"row_threads": 64, "block_rows": 2}, "has a block of its own"),
        ("softmax", {"row_threads": 8, "block_rows": 1}, "no whole number of warps"),
        ("softmax", {"cluster": 8, "row_threads": 64, "block_rows": 1}, "128 threads"),
        ("softmax", {"row_storage": "memory", "prefetch": 0, "convert": "again"}, "unpacked again"),
        ("softmax", {"row_storage": "registers", "unroll": 2}, "held in registers"),
        (
            "long rows",
            {"row_storage": "shared", "cluster": 1, "blocks_per_sm": 1},
            "shared memory do not fit",
        ),
        (
            "softmax",
            {"blocks_per_sm": 32, "row_threads": 1024, "block_rows": 1},
            "a multiprocessor",
        ),
        ("ones", {"tile_scheduler": "persistent"}, "no loop over them"),
        (
            "softmax",
            {"row_storage": "memory", "tile_scheduler": "persistent", "stages": 2},
            "copy some ahead",
        ),
        (
            "layernorm",
            {"row_storage": "memory", "row_invariants": "kept"},
            "where elements of rows stay",
        ),
        (
            "pairs",
            {"row_storage": "shared", "convert": "once", "row_invariants": "again"},
            "up to 1 lie side by side",
        ),
        (
            "scaled columns",
            {"row_storage": "shared", "convert": "once"},
            "up to 1 lie side by side",
        ),
        ("softmax", {"tile_scheduler": "tiles", "idle_clusters": 1}, "only clusters that stay"),
    ],
)
def test_refusals_are_in_words(name, change, words):
    all_ = space(name)
    schedule = all_.schedule(all_.sample(np.random.default_rng(0), 1)[0])
    values = {**schedule.values, **change}
    assert words in str(all_.why_not(type(schedule)("rows", tuple(values.items()))))


def quantity(all_: Space, name: str, **changes: object) -> float:
    """A quantity of a schedule of rows in shared memory, with these changes."""
    plain = {"vector": 8, "lanes": "columns", "row_threads": 128, "block_rows": 1, "unroll": 1}
    plain |= {
        "thread_rows": 1,
        "cluster": 1,
        "row_storage": "shared",
        "convert": "once",
        "prefetch": 0,
    }
    plain |= {"passes": "plain", "loads": "cached", "stores": "cached", "blocks_per_sm": 2}
    values = {
        **plain,
        "tile_scheduler": "tiles",
        "stages": 1,
        "row_invariants": "again",
        "idle_clusters": 0,
        **changes,
    }
    schedule = Schedule("rows", tuple(values.items()))
    assert all_.why_not(schedule) is None
    return float(all_.quantities(all_.rows([schedule]))[name][0])


def test_what_all_rows_share_comes_from_l2_for_each_tile_and_what_is_not_held_for_each_sweep():
    work = workload("layernorm", r=4096, c=8192, dtype="bfloat16")
    all_ = Space(work, H200, [CudaRows(work, H200)])
    weights, rows = 2 * 8192 * 2, 4096 * 8192 * 2
    held = quantity(all_, "near_bytes")
    assert held == work.least_bytes + 4095 * weights
    assert held - quantity(all_, "near_bytes", thread_rows=2) == 2048 * weights
    assert quantity(all_, "near_bytes", row_storage="memory") - held == 2 * rows
    assert quantity(all_, "main_bytes", thread_rows=2) == work.least_bytes
    kept = {"tile_scheduler": "persistent", "unroll": 8, "row_invariants": "kept"}
    assert quantity(all_, "near_bytes", **kept) == work.least_bytes + 263 * weights


def test_numbers_that_come_from_shared_memory_again_take_no_registers_between_sweeps():
    """64 registers of weights and the numbers of one step fit the 128 of a thread."""
    work = workload("layernorm", r=4096, c=8192, dtype="bfloat16")
    all_ = Space(work, H200, [CudaRows(work, H200)])
    stays = {"tile_scheduler": "persistent", "blocks_per_sm": 4}
    kept = quantity(all_, "instructions", **stays, row_invariants="kept")
    assert kept == quantity(all_, "instructions", **stays)


def test_lanes_that_read_apart_take_more_lines_and_sectors():
    """Of a transposition of float32 lanes read one row each, 16 bytes of a sector of 32 and of a
    line; what they write lies side by side, 128 bytes for one of the four elements."""
    work = workload("y[j, i] = x[i, j]", i=4096, j=4096)
    all_ = Space(work, H200, [CudaRows(work, H200)])
    rows = list(all_.sample(np.random.default_rng(0), 400))
    found = [all_.schedule(row).values for row in rows]
    wide = [v["vector"] == 4 and v["block_rows"] >= 32 and v["lanes"] == "rows" for v in found]
    wanted = np.array(rows)[wide]
    assert len(wanted)
    quantities, moved = all_.quantities(wanted), 4096 * 4096 * 4
    assert (quantities["near_bytes"] == 3 * moved).all()
    assert (quantities["intensity"] <= moved / 4 * 2 / 32 / (moved / 16 + moved / 128)).all()


def test_numbers_that_fill_more_registers_than_there_are_count_as_more_work():
    held = {
        "row_storage": "registers",
        "blocks_per_sm": 4,
        "thread_rows": 2,
    }  # 128 elements, 128 registers
    once, again = (
        quantity(space("softmax"), "instructions", **held, convert=way) for way in ("once", "again")
    )
    fits = quantity(space("softmax"), "instructions", **held | {"blocks_per_sm": 2})
    assert once > 2 * again > again > fits


def test_few_warps_leave_issue_slots_idle():
    """Eight rows of 16 KiB leave room for one block of two warps, four for three blocks of one."""
    two, three = (
        quantity(space("softmax"), "instructions", row_threads=8, block_rows=rows, blocks_per_sm=1)
        for rows in (8, 4)
    )
    assert two > 1.2 * three


def test_rows_that_are_alone_compute_nothing_while_they_come():
    """One row of 16 KiB has a multiprocessor for itself, or is one of many there."""
    alone = {"tile_scheduler": "persistent", "blocks_per_sm": 1}
    one = quantity(space("softmax"), "instructions", **alone, row_threads=512)
    many = quantity(space("softmax"), "instructions", blocks_per_sm=4, row_threads=512)
    assert one > 1.5 * many


def test_rows_that_are_read_again_wait_at_each_step_of_each_sweep():
    """Two or 16 steps, three times each; one block for each multiprocessor hides no wait."""
    work = workload("softmax", r=132, c=65536, dtype="bfloat16")
    all_ = Space(work, H200, [CudaRows(work, H200)])
    again = {"row_storage": "memory", "row_threads": 512, "blocks_per_sm": 1}
    few, many = (quantity(all_, "instructions", **again, unroll=n) for n in (8, 1))
    assert many > 2 * few


def test_what_is_reduced_to_a_number_each_has_no_epilogue_to_speak_of():
    labels, softmax = space("labels"), space("softmax")
    assert quantity(labels, "epilogue_elements") == pytest.approx(4096, rel=0.1)
    assert quantity(softmax, "epilogue_elements") == 8192 * 8192


def test_no_more_persistent_blocks_run_than_are_launched():
    found = [
        quantity(space("softmax"), "parallelism", tile_scheduler=g) for g in ("tiles", "persistent")
    ]
    assert found[0] > found[1] == 2 * H200.multiprocessors


def test_threads_in_all_blocks_of_a_cluster_count():
    all_ = space("few long rows")
    values = all_.schedule(all_.sample(np.random.default_rng(0), 1)[0]).values
    many = {"row_threads": 128, "block_rows": 1, "thread_rows": 1, "cluster": 16}
    shared = {
        "row_storage": "shared",
        "tile_scheduler": "tiles",
        "stages": 1,
        "convert": "once",
        "prefetch": 0,
    }
    sizes = {"vector": 8, "unroll": 1, "blocks_per_sm": 1}
    for cluster, words in ((16, "None"), (1, "leave most of the GPU idle")):
        changed = {**values, **many, **shared, **sizes, "cluster": cluster}
        assert words in str(all_.why_not(Schedule("rows", tuple(changed.items()))))


@pytest.mark.parametrize(("block_rows", "allowed"), [(4, True), (8, False)])
def test_a_block_of_several_warps_has_fewer_rows_than_twice_those_there_are(block_rows, allowed):
    work = workload("softmax", r=4, c=256)
    template = CudaRows(work, H200)
    (rule,) = (rule for rule in template.rules if rule.name == "block_rows")
    values = {"row_threads": 32, "block_rows": block_rows}
    assert bool(rule.holds(values)) is allowed
    assert rule.holds({"row_threads": 4, "block_rows": 8})  # one warp has no fewer


@pytest.mark.parametrize(("columns", "allowed"), [(768, True), (1024, True), (1032, False)])
def test_a_warp_may_have_a_short_row_alone_however_few_there_are(columns, allowed):
    work = workload("layernorm", r=128, c=columns, dtype="float16")
    rules = [r for r in CudaRows(work, H200).rules if r.name == "few_threads"]
    values = {"vector": 8, "row_threads": 32, "thread_rows": 1, "cluster": 1}
    assert all(rule.holds(values) for rule in rules) == allowed


def test_each_row_of_a_thread_takes_a_pointer_to_each_array():
    """Of 64 bits, which are two registers, to what is read and to what is written."""
    sizes = CudaRows(workload("rmsnorm", r=64, c=256), H200).sizes
    values = {"vector": 1, "row_storage": "memory", "unroll": 1, "prefetch": 0, "row_threads": 32}
    values |= {"row_invariants": "again"}
    one, two = (
        sizes.registers({**values, "thread_rows": rows, "block_rows": 4, "cluster": 1})
        for rows in (1, 2)
    )
    fresh = sizes.flight_words({**values, "thread_rows": 2}) - sizes.flight_words(
        {**values, "thread_rows": 1}
    )
    assert two - one - fresh == sizes.variables + 2 * 2


@pytest.mark.parametrize(
    ("text", "extents", "dtype", "words"),
    [
        ("where c <= r; y[r] = sum[c](x[r, c])", {"r": 8, "c": 8}, "float32", "bounded"),
        ("y[r] = sum[c](abs(x[r, c]))", {"r": 8, "c": 8}, "float64", "function on float32"),
        ("y[r, c] = x[r, c] * (c % (r + 1))", {"r": 8, "c": 8}, "float32", "from 1 on"),
        ("n: int32[r, c]; y[r] = sum[c](n[r, c])", {"r": 8, "c": 8}, "float32", "whole numbers"),
    ],
)
def test_what_is_not_served_is_refused_in_words(text, extents, dtype, words):
    computation = Workload("program", (), program(text, dtype=dtype, **extents), "no product")
    assert words in str(CudaRows.why_not(computation, H200))


def test_products_are_left_to_others():
    assert "templates of their own" in str(
        CudaRows.why_not(workload("matmul", m=8, n=8, k=8), H200)
    )
