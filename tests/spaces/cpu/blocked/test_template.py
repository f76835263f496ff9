"""The contraction template: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from pathlib import Path

import numpy as np
import pytest

from tests.pairwise import pairwise
from tests.spaces.c_program import run_c
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled, compile_kernels, complaint
from tilewright.spaces.algebra.index import index
from tilewright.spaces.cpu.blocked.ahead import Ahead
from tilewright.spaces.cpu.blocked.blocking import blocking
from tilewright.spaces.cpu.blocked.template import BlockedTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.product import orient
from tilewright.spaces.workloads.workload import Workload

GOLDEN = Path(__file__).parent / "golden"
EXTENTS = (1, 2, 3, 7, 16, 17, 31, 48, 61, 100, 127, 131, 192, 257)
EPILOGUES = (
    "",
    "relu(x + bias[n])",
    "gelu(x + bias[m]) * scale[] + residual[m,n]",
    "max(x - transposed[n,m], 0.25) / (1 + abs(column[n] * row[m]))",
    "select(x < bias[n], exp2(x * 0.1), log(abs(x) + 1)) + floor(x * 4)",
)
ORDERS = ("row", "col")
LAYOUTS = list(itertools.product(ORDERS, repeat=3))
DTYPES = (("float32", "float32"), ("bfloat16", "bfloat16"), ("bfloat16", "float32"))

FIXED = made_up_cpu()


def space_of(w: Workload, target: CpuTarget) -> Space:
    return Space(w, target, [BlockedTemplate(w, target)])


def narrow(vector_bytes: int) -> CpuTarget:
    """This machine as if its vectors were shorter, and without its special instructions."""
    return with_vectors(this_cpu(), vector_bytes)


def with_vectors(target: CpuTarget, vector_bytes: int) -> CpuTarget:
    isa = {32: "avx2", 16: "generic"}[vector_bytes]
    return dataclasses.replace(
        target, isa=isa, vector_bytes=vector_bytes, vector_registers=16, bf16_dot=False
    )


@pytest.mark.parametrize(("a", "b", "c", "dtype", "out"), pairwise(*[ORDERS] * 3, DTYPES))
def test_random_schedules_agree_with_the_reference(a, b, c, dtype, out, tmp_path):
    seed = LAYOUTS.index((a, b, c)) * len(DTYPES) + DTYPES.index((dtype, out))
    choose = random.Random(seed)
    target = dataclasses.replace(this_cpu(), threads=choose.choice((1, 2, 6)))
    m, n, k = (choose.choice(EXTENTS) for _ in range(3))
    w = workload(
        "matmul",
        m=m, n=n, k=k, a=a, b=b, c=c, dtype=dtype, out=out, epilogue=EPILOGUES[seed % 5],
    )  # fmt: skip
    check_sampled(space_of(w, target), 5, seed, tmp_path)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 300, 40), (300, 1, 5), (2, 5, 700), (3, 20, 1)])
def test_slivers(shape, tmp_path):
    m, n, k = shape
    w = workload("matmul", m=m, n=n, k=k, epilogue="x + bias[n]", b="col")
    check_sampled(space_of(w, this_cpu()), 6, 0, tmp_path)


@pytest.mark.parametrize("vector_bytes", [16, 32])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_narrower_vectors(vector_bytes, dtype, tmp_path):
    w = workload("matmul", m=61, n=45, k=77, b="col", dtype=dtype, epilogue="x + bias[n]")
    if vector_bytes == 32 and this_cpu().isa not in ("avx2", "avx512"):
        pytest.skip("no AVX2 here")
    check_sampled(space_of(w, narrow(vector_bytes)), 6, 0, tmp_path)


@pytest.mark.parametrize(("a", "b", "c"), LAYOUTS)
def test_an_odd_depth_of_pairs(a, b, c, tmp_path):
    """No term of the next row, and nothing past the last row, is multiplied with the lone term,
    not even by zero: all those are NaN."""
    k = (1, 3, 17, 131, 2039)[LAYOUTS.index((a, b, c)) % 5]
    w = workload("matmul", m=37, n=45, k=k, a=a, b=b, c=c, dtype="bfloat16", out="float32")
    inputs = w.make_inputs(0)
    inputs["A"][::2], inputs["B"][:, 1::2] = np.nan, np.nan
    space = space_of(w, this_cpu())
    kernels = [
        space.lower(space.schedule(row)) for row in space.sample(np.random.default_rng(0), 4)
    ]
    library = compile_kernels(kernels, this_cpu(), tmp_path)
    for kernel in kernels:
        assert not complaint(kernel, library, w, 0, inputs)


@pytest.mark.parametrize("b", ["row", "col"])
def test_all_that_is_next_is_asked_for(b):
    w = workload("matmul", m=100, n=200, k=300, b=b)
    values = {"tile_rows": 8, "tile_vectors": 2, "row_workers": 2, "column_workers": 1}
    values |= {"block_rows": 32, "block_columns": 64, "block_depth": 128}
    blocks = blocking(orient(w.matmul), 16, values)
    ahead = Ahead(orient(w.matmul), blocks, packed=True)
    stride = w.matmul.factors[1].stride("k" if b == "row" else "n")
    shares = [
        ahead.share(index(row), index(0)) for row in range(0, blocks.chunk_rows, blocks.tile_rows)
    ]
    lines = "".join(f'printf("%ld\\n", (long)({share}));' for share in shares)
    firsts = map(int, run_c(f"#include <stdio.h>\nint main(void) {{ {lines} }}"))
    asked = {first // stride + run for first in firsts for run in range(ahead.layout.shape[0])}
    assert asked >= set(range(blocks.block_depth if b == "row" else blocks.tile_columns))


def test_bfloat16_rounds_to_nearest_even_and_keeps_nan(tmp_path):
    w = workload("matmul", m=1, n=16, k=1, dtype="bfloat16")
    space = space_of(w, this_cpu())
    kernel = space.lower(next(space.enumerate()))
    library = compile_kernels([kernel], this_cpu(), tmp_path)
    values = np.array([1, np.nan, np.inf, -np.inf, 3e38, 1e-40, -0.0, 255, *range(8)])
    b = values.astype(w.matmul.factors[1].element.numpy).reshape(1, 16)
    a = np.full((1, 1), 1.0078125, dtype=b.dtype)
    c = np.zeros((1, 16), dtype=b.dtype)
    import ctypes

    workspace = np.zeros(kernel.call.workspace_bytes + 64, dtype=np.uint8)
    pointers = (ctypes.c_void_p * 3)(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    address = workspace.ctypes.data + (-workspace.ctypes.data) % 64
    getattr(library, kernel.call.entry)(pointers, ctypes.c_void_p(address), None)
    expected = (a.astype(np.float32) * b.astype(np.float32)).astype(b.dtype)
    np.testing.assert_array_equal(c.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(
    "target", [FIXED, with_vectors(FIXED, 32), with_vectors(FIXED, 16)], ids=lambda t: t.isa
)
def test_the_space_of_a_thousand_cubed_is_large(target):
    w = workload("matmul", m=1024, n=1024, k=1024)
    assert space_of(w, target).count() >= 10_000


SHAPES = list(itertools.product((1, 2, 5, 40, 4096), repeat=3))
FEW_SHAPES = list(itertools.product((1, 5, 4096), repeat=3))


@pytest.mark.parametrize(
    "extents",
    [pytest.param(s, marks=() if s in FEW_SHAPES else pytest.mark.slow) for s in SHAPES],
)
def test_no_shape_is_left_without_schedules(extents):
    m, n, k = extents
    generator = np.random.default_rng(0)
    for target in (FIXED, narrow(16), dataclasses.replace(FIXED, threads=12)):
        for dtype, b in (("float32", "row"), ("bfloat16", "col")):
            w = workload("matmul", m=m, n=n, k=k, dtype=dtype, b=b)
            assert len(space_of(w, target).sample(generator, 4))


def test_every_rule_refuses_something_and_says_why():
    target = dataclasses.replace(FIXED, threads=2, bf16_dot=True)
    pairs = workload("matmul", m=24, n=40, k=3000, a="col", b="col", dtype="bfloat16")
    plain = workload("matmul", m=2048, n=2048, k=2048)
    assert not silent_rules([space_of(w, target) for w in (pairs, plain)], 5_000)


def test_quantities_are_complete_and_possible():
    for epilogue, threads in (("", 1), ("relu(x)", 2)):
        w = workload("matmul", m=200, n=333, k=150, epilogue=epilogue)
        space = space_of(w, dataclasses.replace(FIXED, threads=threads))
        quantities = checked_quantities(space, seed=0, schedules=500)
        assert (quantities["flops"] >= w.flops).all()
        assert (quantities["imbalance"] >= 1).all()


def test_packing_and_blocking_show_in_the_quantities():
    w = workload("matmul", m=2048, n=2048, k=2048)
    template = BlockedTemplate(w, FIXED)
    base = space_of(w, FIXED).schedule(np.zeros(14, dtype=int)).values | {
        "tile_rows": 12, "tile_vectors": 2, "block_depth": 256, "block_rows": 256,
        "block_columns": 1024,
    }  # fmt: skip

    def of(**changes: object) -> dict[str, float]:
        columns = {name: np.array([value]) for name, value in (base | changes).items()}
        return {name: float(v[0]) for name, v in template.quantities(columns).items()}

    assert of(pack_right=True)["packing_bytes"] == 2 * 4 * 2048 * 2048
    assert of(block_depth=1024)["tile_visits"] * 4 == of()["tile_visits"]
    assert of(tile_rows=4)["register_bytes"] > of()["register_bytes"]
    assert of(block_rows=4096)["middle_bytes"] > of(block_rows=256)["middle_bytes"]
    more = of(block_depth=64)["near_bytes"] - of(block_depth=128)["near_bytes"]
    assert more == 16 * 2 * 4 * 2048 * 2048  # sixteen times more all sums are read and written
    assert of()["synchronisations"] == 0
    assert of(row_workers=2)["synchronisations"] == of(row_workers=4)["synchronisations"] == 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"dtype": "float64"}, "float64"),
        ({"dtype": "int8"}, "int8"),
        ({"dtype": "float16"}, "A is"),
    ],
)
def test_other_dtypes_are_refused_in_words(parameters, words):
    reason = BlockedTemplate.refuses(workload("matmul", m=8, n=8, k=8, **parameters), FIXED)
    assert reason is not None
    assert words in reason


def test_a_schedule_outside_the_space_is_not_lowered():
    space = space_of(workload("matmul", m=64, n=64, k=64), FIXED)
    schedule = next(space.enumerate())
    wild = Schedule(schedule.template, tuple({**schedule.values, "tile_rows": 28}.items()))
    with pytest.raises(InputError, match="not in the space"):
        space.lower(wild)


GOLDEN_CASES = {
    "plain": (
        {"m": 100, "n": 70, "k": 50},
        1,
        {
            "multiply": "fma", "tile_rows": 10, "tile_vectors": 2, "row_workers": 1,
            "column_workers": 1, "order": "columns_outer", "pack_left": False, "pack_right": True,
            "block_depth": 256, "block_rows": 64, "block_columns": 64, "unroll": 2,
            "prefetch": False,
        },
    ),
    "fused": (
        {
            "m": 61, "n": 90, "k": 600, "dtype": "bfloat16", "a": "col", "b": "col",
            "epilogue": "relu(x + bias[n]) * scale[]",
        },
        4,
        {
            "multiply": "dot", "tile_rows": 6, "tile_vectors": 4, "row_workers": 2,
            "column_workers": 1, "order": "rows_outer", "pack_left": True, "pack_right": True,
            "block_depth": 384, "block_rows": 32, "block_columns": 128, "unroll": 1,
            "prefetch": True,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN_CASES)
def test_generated_code_is_what_it_was(name):
    """Run with TILEWRIGHT_UPDATE_GOLDEN=1 to accept a change, and read the difference."""
    parameters, threads, values = GOLDEN_CASES[name]
    w = workload("matmul", **parameters)
    space = space_of(w, dataclasses.replace(FIXED, threads=threads, bf16_dot=True))
    schedule = Schedule("contraction", tuple(values.items()))
    kernel = space.lower(schedule)
    assert kernel == space.lower(schedule)
    text = f"/* {w}\n   {schedule} */\n{kernel.source.body}"
    path = GOLDEN / f"contraction_{name}.c"
    if os.environ.get("TILEWRIGHT_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
