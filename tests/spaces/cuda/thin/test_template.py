"""The template of products with few rows: its space, its sizes, what it refuses."""

from __future__ import annotations

import pytest

from tests.spaces.cuda.block_templates import BlockTemplateContract
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.cuda.thin.code import ThinCode
from tilewright.spaces.cuda.thin.product import MOST_FEW, ThinProduct
from tilewright.spaces.cuda.thin.sizes import ThinSizes
from tilewright.spaces.cuda.thin.template import CudaThin
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.product import orient

STREAM = {
    "multiply": "fma",
    "lane_columns": 32,
    "thread_columns": 8,
    "thread_depth": 4,
    "in_flight": 2,
    "small_operand": "memory",
    "load_order": "lanes",
    "splits": 1,
    "warp_columns": 2,
    "warp_depth": 4,
    "blocks_per_sm": 1,
    "fetch": 0,
    "merge": "store",
}
MATRICES = {"multiply": "mma", "lane_columns": 8, "fetch": 128, "small_operand": "shared"}


class TestThin(BlockTemplateContract):
    template, code, sizes = CudaThin, ThinCode, ThinSizes
    dtypes = ("float32", "bfloat16", "float16", "int8", "float64")
    shapes = ((1, 4096, 4096), (8, 2039, 2039), (4096, 2, 512), (300, 1, 77), (5, 3, 1))
    large = (8, 4096, 4096)

    def check_copies(self, code, sizes, product, values):
        """There are none; but what is in shared memory at a time has room."""
        slabs = code.threads // 32 * code.tile.slab_bytes
        assert code.shared_bytes == max(code.small.shared_bytes + slabs, code.place.size)

    def known_good(self):
        return [("float32", STREAM), ("float16", STREAM | MATRICES)]


@pytest.mark.parametrize(
    ("parameters", "target", "words"),
    [
        ({}, "cpu", "CUDA"),
        ({"m": MOST_FEW + 1}, "sm_90a", "at most 16 rows or columns of the output; there are 17"),
        ({"dtype": "float8_e5m2"}, "sm_80", "sm_80 does not convert"),
        ({"dtype": "float64", "epilogue": "gelu(x)"}, "sm_80", "calls gelu"),
    ],
)
def test_what_it_cannot_do_is_refused_in_words(parameters, target, words):
    work = workload("matmul", **{"m": 8, "n": 80, "k": 8, **parameters})
    hardware = detect_cpu() if target == "cpu" else cuda_target(target)
    assert words in (CudaThin.refuses(work, hardware) or "")


@pytest.mark.parametrize(("order", "apart"), [("row", 1.0), ("col", 1 / 16)])
def test_lanes_that_write_apart_send_a_sector_each(order, apart):
    """Of 16 columns in rows of 32 bytes, each output is in a sector of its own for a warp."""
    work = workload("matmul", m=4096, n=16, k=512, c=order, dtype="float16")
    narrow = CudaThin(work, cuda_target("sm_90a"))
    assert narrow.sectors_written == apart


def test_steps_that_wait_for_memory_count_as_instructions():
    """112 blocks of 2 warps take 128 steps, 112 of 16 warps take 16: of a product with 16 rows, on
    an H200, the first took 1.7 times as long and more."""
    work = workload("matmul", m=16, n=14336, k=4096, dtype="bfloat16")
    target = cuda_target("sm_90a")
    space = Space(work, target, [CudaThin(work, target)])
    usual = STREAM | MATRICES | {"thread_columns": 16, "warp_columns": 1, "in_flight": 1}
    usual |= {"small_operand": "memory", "thread_depth": 4}
    rows = space.rows(
        [Schedule("thin", tuple((usual | {"warp_depth": warps}).items())) for warps in (2, 16)]
    )
    few, many = space.quantities(rows)["instructions"]
    assert few > 4 * many


@pytest.mark.parametrize(("m", "n"), [(3, 500), (500, 3)])
@pytest.mark.parametrize("order", ["row", "col"])
def test_few_rows_and_few_columns_are_the_same(m, n, order):
    thin = ThinProduct(orient(workload("matmul", m=m, n=n, k=64, c=order).matmul))
    assert (thin.few, thin.many) == (3, 500)
    assert (thin.small.size, thin.large.size) == (3 * 64, 500 * 64)


@pytest.mark.parametrize(
    ("parameters", "large", "small"),
    [
        ({"b": "col"}, 8, 8),  # both run along the depth
        ({"b": "row"}, 8, 8),
        ({"b": "col", "k": 4100}, 4, 4),
        ({"b": "row", "n": 4099}, 1, 8),
        ({"a": "col"}, 8, 1),
    ],
)
def test_vectors_are_as_wide_as_memory_allows(parameters, large, small):
    sizes = {"m": 3, "n": 4096, "k": 4096, "dtype": "float16", **parameters}
    thin = ThinProduct(orient(workload("matmul", **sizes).matmul))
    assert (thin.large_vector, thin.small_vector) == (large, small)


def test_matrix_instructions_are_for_halves_only():
    all_ways = {"fma", "mma", "mma_turned"}
    for dtype, ways in (("float16", all_ways), ("float32", {"fma"}), ("int8", {"fma"})):
        work = workload("matmul", m=4, n=4096, k=4096, dtype=dtype)
        template = CudaThin(work, cuda_target("sm_80"))
        (decision,) = (d for d in template.decisions if d.name == "multiply")
        assert set(decision.values) == ways


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lane_columns": 16}, "mma.sync has 8 lanes along columns, not 16"),
        ({"thread_columns": 1}, "mma.sync takes two columns of a thread"),
        ({"thread_depth": 2}, "mma.sync takes four terms of a thread; 2"),
        ({"multiply": "mma_turned", "lane_columns": 16}, "mma.sync has 8 lanes along columns"),
        ({"small_operand": "memory"}, "right has none that can be read at once"),
        ({"splits": 8, "thread_depth": 64, "warp_depth": 8}, "leave a part without work"),
    ],
)
def test_a_refusal_says_why(changes, words):
    work = workload("matmul", m=4096, n=3, k=4096, dtype="float16")
    target = cuda_target("sm_90a")
    space = Space(work, target, [CudaThin(work, target)])
    values = {**STREAM, **MATRICES, "thread_depth": 8, **changes}
    words = words.replace("right", work.matmul.factors[1].name)
    assert words in (space.why_not(Schedule("thin", tuple(values.items()))) or "")


def test_blocks_of_eight_columns_read_all_their_depth_at_once():
    work = workload("matmul", m=8, n=14336, k=4096, dtype="float16", b="col")
    target = cuda_target("sm_90a")
    space = Space(work, target, [CudaThin(work, target)])
    values = {**STREAM, "multiply": "mma_turned", "lane_columns": 8, "thread_columns": 1}
    values |= {"thread_depth": 64, "warp_columns": 1, "warp_depth": 16, "in_flight": 1}
    chosen = Schedule(
        "thin", tuple((values | {"small_operand": "cache", "blocks_per_sm": 2}).items())
    )
    assert space.why_not(chosen) is None
    ahead = Schedule(
        "thin", tuple((values | {"small_operand": "memory", "blocks_per_sm": 2}).items())
    )
    assert "a thread needs about 98 registers" in (space.why_not(ahead) or "")
