"""SIMT and mma kernels: chosen hard cases on the emulator, machine code without a GPU."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import check_right, deferred
from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.emulator import Emulator, verify
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.sass import count
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.simt.template import Simt
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload

ORDERS = [(a, b, c) for a in ("row", "col") for b in ("row", "col") for c in ("row", "col")]
ALONE = {"splits": 1, "raster": "along_columns", "raster_group": 1, "merge": "store"}
SIMT = {"thread_rows": 4, "thread_columns": 4, "lane_rows": 4, "warp_rows": 2, "warp_columns": 1}
SIMT |= {"depth": 8, "copy_spread": 8, "blocks_per_sm": 1, **ALONE}
MMA = {"tile_rows": 32, "tile_columns": 16, "warp_rows": 1, "warp_columns": 2, "stages": 3}
MMA |= {"blocks_per_sm": 1, **ALONE, "store_path": "direct"}
TEMPLATES: dict[str, tuple[type[Template], dict[str, int | str]]] = {
    "simt": (Simt, SIMT),
    "mma": (Mma, MMA),
}
BYTES = {"float16": 2, "bfloat16": 2, "tfloat32": 4, "int8": 1, "float8_e4m3fn": 1}


def space(name: str, work: Workload, target: str) -> Space:
    hardware = cuda_target(target)
    return Space(work, hardware, [TEMPLATES[name][0](work, hardware)])


@deferred
def case(name: str, work: Workload, target: str = "sm_89", **changes: int | str) -> tuple:
    """The workload, and the kernel of the template's small schedule with some decisions changed."""
    values = dict(TEMPLATES[name][1])
    if name == "mma":
        values["depth"] = 64 // work.matmul.factors[0].element.bytes
    values |= changes
    return work, space(name, work, target).lower(Schedule(name, tuple(values.items())))


def matmul(m: int, n: int, k: int, orders: tuple[str, str, str] = ORDERS[0], **options) -> Workload:
    a, b, c = orders
    return workload("matmul", m=m, n=n, k=k, a=a, b=b, c=c, **options)


def hard_cases() -> dict[str, tuple]:
    cases: dict[str, tuple] = {}
    for i, orders in enumerate(ORDERS):
        label = " ".join(orders)
        half = ("float16", "bfloat16")[i % 2]
        cases[f"simt, odd, {label}"] = case("simt", matmul(41, 37, 19, orders))
        cases[f"simt, vectors, {label}"] = case("simt", matmul(40, 36, 20, orders))
        cases[f"mma, odd, {label}"] = case("mma", matmul(41, 37, 67, orders, dtype=half))
        cases[f"mma, vectors, {label}"] = case("mma", matmul(48, 40, 72, orders, dtype=half))
    for i, dtype in enumerate(("tfloat32", "int8", "float8_e4m3fn")):
        for orders in (ORDERS[i], ORDERS[7 - i]):
            work = matmul(40, 36, 100, orders, dtype=dtype)
            cases[f"mma, {dtype}, {' '.join(orders)}"] = case("mma", work)
    for name in ("simt", "mma"):
        for out, epilogue in (
            ("float32", "gelu(x * s[] + bias[n])"),
            ("int8", "x * 0.02"),
            ("int8", ""),
        ):
            work = matmul(41, 36, 67, dtype="int8", out=out, epilogue=epilogue)
            cases[f"{name}, int8 to {out} by {epilogue}"] = case(name, work)
        work = matmul(41, 36, 67, dtype="float16", accumulator="float16", epilogue="relu(x)")
        cases[f"{name}, float16 sums"] = case(name, work)
    for exchange in ("store", "add"):
        split = {"splits": 3, "merge": exchange}
        for name, dtype in (("simt", "float64"), ("simt", "int8"), ("mma", "float16")):
            work = matmul(41, 37, 203, dtype=dtype)
            cases[f"{name}, {dtype}, split by {exchange}"] = case(name, work, **split)
    fused = "gelu(x + bias[n]) * scale[] + residual[n, m] * rows[m]"
    for name, dtype in (("simt", "float32"), ("mma", "float16")):
        for stages in (2, 6) if name == "mma" else (0,):
            ring = {"stages": stages} if stages else {}
            work = matmul(41, 37, 203, dtype=dtype, epilogue=fused)
            walk = {"raster": "along_rows", "raster_group": 2}
            cases[f"{name}, fused, {stages} stages"] = case(name, work, **ring, **walk)
    for columns, out in ((40, "float16"), (40, "float32"), (44, "float16"), (36, "float32")):
        work = matmul(70, columns, 67, dtype="float16", out=out, epilogue="x + bias[n]")
        shape = {"tile_rows": 32, "tile_columns": 32, "warp_rows": 2}
        cases[f"mma, {columns} {out} through slabs"] = case(
            "mma", work, **shape, store_path="shared"
        )
    for terms, depth, spread in ((5, 8, 4), (8, 8, 8), (16, 8, 4), (17, 16, 4), (47, 16, 16)):
        steps = {"depth": depth, "copy_spread": spread}
        cases[f"simt, {terms} terms by {depth}"] = case("simt", matmul(41, 20, terms), **steps)
    cases["simt, one row"] = case(
        "simt", matmul(1, 300, 65), thread_rows=1, lane_rows=1, warp_rows=1, splits=2
    )
    cases["mma, one row"] = case("mma", matmul(1, 40, 65, dtype="float16"), tile_rows=16)
    return cases


CASES = hard_cases()


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as running:
        running.build([kernel for _, kernel in CASES.values()])
        yield running


@pytest.mark.parametrize("name", CASES)
def test_hard_cases_agree_with_the_reference_in_any_order(emulator, name):
    check_right(emulator, CASES[name], list(CASES).index(name))


@pytest.mark.parametrize("name", TEMPLATES)
def test_offsets_of_64_bits_lead_to_the_same_places(emulator, monkeypatch, name):
    for module in (
        "tilewright.spaces.cuda.mma.accumulators",
        "tilewright.spaces.cuda.blocks.copies.tile_copy",
        "tilewright.spaces.cuda.simt.code",
        "tilewright.spaces.cuda.simt.whole_tiles",
    ):
        monkeypatch.setattr(f"{module}.position_type", lambda product: "i64")
    work, kernel = case(name, matmul(41, 36, 67, dtype="float16"))
    assert "(i64)threadIdx.x" in kernel.source.body
    result = verify(emulator, work, kernel)
    assert result.error_kind is None, result.error_text


@pytest.mark.parametrize("name", TEMPLATES)
def test_huge_operands_are_indexed_in_64_bits(name):
    large, dtype = (LARGE_SIMT, "float32") if name == "simt" else (LARGE_MMA, "float16")
    made = case(name, matmul(2**17, 256, 2**14, dtype=dtype), "sm_80", **large)
    assert "i64 row0" in made[1].source.body
    assert instructions("sm_80", made)[{"simt": "FFMA", "mma": "HMMA"}[name]] > 0


def instructions(target: str, made: tuple) -> Counter[str]:
    """What a kernel that must compile well is made of."""
    (work, kernel), hardware = made, cuda_target(target)
    builder = NvrtcBuilder(hardware)
    try:
        (built,) = builder.build([Candidate(Job("test", work, hardware), Schedule("", ()), kernel)])
        assert built.error_kind is None, built.error_text
        return count(read_cubin(built.binary.read_bytes(), kernel.call.entry).code)
    finally:
        builder.close()


def all_wide(found: Counter[str], name: str) -> bool:
    return found[name] > 0 and found[name] == found[f"{name}.128"]


LARGE_SIMT = {"thread_rows": 8, "thread_columns": 8, "warp_rows": 4, "warp_columns": 2}
LARGE_MMA = {"tile_rows": 64, "tile_columns": 32, "warp_rows": 2, "warp_columns": 4}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("orders", [ORDERS[0], ORDERS[2], ORDERS[4]])
def test_simt_kernels_move_16_bytes_at_a_time(target, orders):
    work = matmul(4096, 4096, 4096, orders)
    found = instructions(target, case("simt", work, target, **LARGE_SIMT, blocks_per_sm=2))
    assert all_wide(found, "LDG")
    assert all_wide(found, "LDS")
    assert all_wide(found, "STG")
    assert found["FFMA"] >= 512
    assert found["LDL"] == found["STL"] == 0


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("orders", ORDERS[::2])
def test_mma_kernels_copy_16_bytes_at_a_time_into_matrices(target, orders):
    work = matmul(4096, 4096, 4096, orders, dtype="float16")
    found = instructions(
        target, case("mma", work, target, **LARGE_MMA, blocks_per_sm=2, store_path="shared")
    )
    assert all_wide(found, "LDGSTS")
    assert found["LDG"] == found["LDL"] == found["STL"] == 0
    assert all_wide(found, "STG")
    assert found["HMMA"] == 4 * found["LDSM"] // 3 * 2


@pytest.mark.parametrize("count", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_sampled_schedules_compile_without_spills(count):
    """At most one in twenty may surprise the rule on registers."""
    generator = np.random.default_rng(7)
    made: dict[str, list[tuple]] = {"sm_80": [], "sm_90a": []}
    for i in range(count):
        target, name = list(made)[i % 2], ("simt", "mma")[i // 2 % 2]
        dtypes = ("float32", "float64") if name == "simt" else ("float16", "int8", "tfloat32")
        size = int(generator.choice([2039, 4096]))
        epilogue = "gelu(x + bias[n])" if i % 5 == 0 and "float64" not in dtypes else ""
        dtype = str(generator.choice(dtypes))
        orders = ORDERS[int(generator.integers(8))]
        options = {"epilogue": epilogue if dtype != "int8" else "", "dtype": dtype}
        points = space(name, matmul(size, size, size, orders, **options), target)
        schedule = points.schedule(points.sample(generator, 1)[0])
        made[target].append((points.workload, points.lower(schedule)))
    refused = []
    for target, cases in made.items():
        builder = NvrtcBuilder(cuda_target(target), jobs=2)
        named = [
            Candidate(Job("test", w, cuda_target(target)), Schedule("", ()), k) for w, k in cases
        ]
        refused += [
            f"{b.candidate.job.workload} {b.error_text}"
            for b in builder.build(named)
            if b.error_kind
        ]
        builder.close()
    assert len(refused) <= count // 20, "\n".join(refused)


@pytest.mark.parametrize("orders", ORDERS[::2])
def test_main_loops_meet_no_bank_twice(emulator, orders):
    for depth in (16, 32, 64):
        work = matmul(128, 128, 128, orders, dtype="float16")
        work, kernel = case("mma", work, "sm_80", **LARGE_MMA, depth=depth)
        assert emulator.run(kernel, work.make_inputs(0)).conflicts == 0
    work, kernel = case("simt", matmul(128, 128, 64, orders), "sm_80", **LARGE_SIMT)
    assert emulator.run(kernel, work.make_inputs(0)).conflicts == 0
