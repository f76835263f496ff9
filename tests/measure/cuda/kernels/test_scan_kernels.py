"""Kernels of scans: hard cases and planted bugs on the emulator, and machine code."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_all_right, deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.cpu.scan.test_template import SCANS
from tilewright.measure.cuda.emulator import Emulator
from tilewright.spaces.cuda.scan.template import CudaScan
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
PLAIN: dict[str, int | str] = {
    "row_threads": 32,
    "block_rows": 1,
    "vectors": 1,
    "parallel_over": "rows",
    "loads": "cached",
    "stores": "cached",
}


def scan(name: str, rows: int, columns: int, kind: str = "float32") -> Workload:
    text = SCANS[name]
    given = {"r": rows, "i": columns, "j": columns, "k": columns, "h": 2}
    kinds = "" if kind == "float32" else f"x: {kind}\ny: {kind}\n"
    return workload(
        kinds + text, **{a: n for a, n in given.items() if re.search(rf"\b{a}\b", text)}
    )


@deferred
def case(w: Workload, **values: int | str) -> Case:
    """The workload, and the kernel of a schedule; lanes and vectors are those of its space."""
    template = CudaScan(w, H200)
    first = {d.name: d.values[-1] for d in template.decisions if d.name in ("lanes", "vector")}
    schedule = Schedule("scan", tuple((first | PLAIN | values).items()))
    assert Space(w, H200, [template]).why_not(schedule) is None
    return w, template.lower(schedule)


WALK = {"row_threads": 64, "vectors": 2}
SHARE = {**WALK, "parallel_over": "columns"}
DOWN = {"row_threads": 4, "block_rows": 8, "vectors": 4}
CASES = {
    "a warp": case(scan("prefixes", 3, 90), vectors=2),
    "a walk": case(scan("prefixes", 3, 1100), **WALK),
    "a walk back": case(scan("behind", 2, 1101), **WALK),
    "rows of a warp": case(scan("before", 7, 60), row_threads=8, block_rows=4, vectors=2),
    "shared": case(scan("prefixes", 2, 1400), **SHARE),
    "shared, back": case(scan("suffixes of a map", 3, 1201), **SHARE),
    "shared by warps": case(scan("before", 3, 300), parallel_over="columns", block_rows=2),
    "maps around": case(scan("maps around", 3, 700), **WALK),
    "two": case(scan("two", 2, 900), **SHARE),
    "of sums": case(scan("of sums", 2, 900), **SHARE),
    "of sums, walked": case(scan("of sums", 2, 900), **WALK),
    "down": case(scan("down", 37, 90), **DOWN),
    "down, shared": case(scan("down", 11, 90), **DOWN, parallel_over="columns"),
    "up": case(scan("of sums, down", 19, 70), **DOWN),
    "halves": case(scan("suffixes", 3, 1304, "bfloat16"), **WALK, loads="stream"),
    "halves, shared": case(scan("before", 2, 2000, "float16"), **SHARE, stores="stream"),
    "doubles": case(scan("prefixes", 2, 600, "float64"), **SHARE),
    "maxima": case(scan("maxima", 3, 1100), **WALK),
    "minima behind, shared": case(scan("minima behind", 2, 1400), **SHARE),
    "products": case(scan("products, down", 11, 90), **DOWN, parallel_over="columns"),
    "sums of maxima": case(scan("sums of maxima", 2, 900), **SHARE),
    "turned": case(scan("turned", 5, 70), **DOWN),
    "batches": case(scan("batches", 9, 70), **DOWN),
}

# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "no barrier": ("a walk", r"tw::sync_block\(\);", ""),
    "slots are written while they are read": ("a walk", r"\(chunk & 1\)", "0"),
    "a carry is lost": ("a walk", r"tw_add_block\(.*\);", ""),
    "another warp's place": ("a walk", r"order / 32, before0", "0, before0"),
    "the last tile": ("a walk", r"chunk < 3", "chunk < 2"),
    "elements past the row": ("a walk back", r"column < 1101", "column < 1103"),
    "the wrong way": ("a walk back", r"63 - order", "order"),
    "tiles from the first": ("a walk back", r"\(\d+ - chunk\)", "chunk"),
    "the element itself": ("rows of a warp", r"false, true>", "false, false>"),
    "other rows' lanes": ("rows of a warp", r"order % 8\)", "threadIdx.x % 32)"),
    "rows past the last": ("rows of a warp", r"row0 < 7 \? row0 : 6", "row0"),
    "no flag is waited for": ("shared", r"tw::wait_global\(.*\);", ""),
    "the flag comes first": (
        "shared by warps", r"tw::fence_global\(\);\n +\}\n +tw::sync_block\(\);", "}",
    ),
    "no fence": ("shared by warps", r"tw::fence_global\(\);", ""),
    "one tile too few": ("shared", r"other < chunk", "other < chunk - 1"),
    "its own tile": ("shared", r"other < chunk", "other <= chunk"),
    "lanes do not join": ("shared", r"carry0 = tw_whole<.*;", ""),
    "the ticket is kept": ("shared", r"tw::store_global\(\(u32 \*\)\(workspace\), 0u\)", "(void)0"),
    "flags are kept": ("shared", r"\+ flag, 0u", "+ flag, 1u"),
    "flags of all but the last": ("shared", r"flag < 6", "flag < 5"),
    "cleared too early": ("shared", r"== 5\) \{", ">= 0) {"),
    "another row's tile": ("shared by warps", r"number % 2", "number % 1"),
    "flags of another sum": ("two", r"256\) \+ 4 \+ tile", "256) + tile"),
    "states of another sum": ("two", r"\(i64\)2 \* 2", "(i64)0 * 2"),
    "slots of another sum": ("two", r"shared \+ 32", "shared + 0"),
    "a maximum is lost": ("maxima", r"carry0 = tw_of_max::join\(.*\);", ""),
    "nothing is zero": ("minima behind, shared", r"tw_of_min::nothing\(\)", "0.0f"),
    "elements past the row are zero": (
        "minima behind, shared", r"s0\[8\] = \{.*\}", "s0[8] = {}",
    ),
    "a part of the column": ("down", r"order / 1\b", "0"),
    "rows next to it": ("down", r"\+ group\) \* 8", ") * 8"),
}  # fmt: skip


class TestScanKernels(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.parametrize("name", ["maps around", "up, those before", "two"])
def test_random_schedules_agree(emulator: Emulator, name: str) -> None:
    w = scan(name, 5, 140)
    space = Space(w, H200, [CudaScan(w, H200)])
    rows = space.sample(np.random.default_rng(3), 4)
    check_all_right(emulator, [(w, space.lower(space.schedule(row))) for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("name", SCANS)
def test_many_random_schedules_agree(emulator: Emulator, name: str) -> None:
    for rows, columns in ((3, 515), (70, 33)):
        w = scan(name, rows, columns)
        space = Space(w, H200, [CudaScan(w, H200)])
        found = space.sample(np.random.default_rng(5), 8)
        check_all_right(emulator, [(w, space.lower(space.schedule(row))) for row in found])


@pytest.mark.parametrize(("arch", "kind"), [("sm_80", "float32"), ("sm_90a", "bfloat16")])
def test_rows_are_moved_16_bytes_at_a_time_and_nothing_spills(arch, kind):
    w = scan("prefixes", 32768, 4096, kind)
    found = instructions(arch, case(w, row_threads=256, vectors=2))
    assert found["LDG"] == found["LDG.128"] == 2
    assert found["STG"] == found["STG.128"] == 2
    assert found["LDL"] == found["STL"] == 0
