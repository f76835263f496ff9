"""Blocks that go straight from registers to the output: what they compute, and which may."""

from __future__ import annotations

import subprocess

import pytest

from tests.pairwise import pairwise
from tests.spaces.cpu.maps.checked_maps import TRANSPOSED, machine, moving, space_of, tiled
from tests.spaces.cpu.native import compile_kernels, complaint, sampled
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.maps.template import MapTemplate
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

MOVED = [
    (TRANSPOSED, {"i": 192, "j": 336}),
    ("y[k, j, i] = x[k, i, j]", {"i": 192, "j": 336, "k": 3}),
    (TRANSPOSED, {"i": 195, "j": 257}),
    ("y[k, j, i] = x[k, i, j]", {"i": 81, "j": 530, "k": 3}),
]


@pytest.mark.parametrize(
    ("text", "n", "dtype", "threads"),
    pairwise(MOVED, ["int8", "bfloat16", "float32", "float64"], [1, 3]),
)
def test_blocks_may_go_straight_from_registers(text, n, dtype, threads, tmp_path):
    w = moving(text, dtype, **n)
    target = machine(threads=threads, cores=threads)
    kernels = [k for k in sampled(space_of(w, target), 30) if k.call.workspace_bytes == 0]
    assert len(kernels) > 3
    library = compile_kernels(kernels, target, tmp_path)
    assert [complaint(kernel, library, w, 1) for kernel in kernels] == [""] * len(kernels)


@pytest.mark.parametrize("ahead", ["nothing", "ask"])
def test_compilers_leave_in_what_asks_for_the_next_block(ahead, tmp_path):
    target = machine()
    if target.architecture != "x86_64":
        pytest.skip("instructions have other names here")
    w = workload(TRANSPOSED, i=512, j=512)
    values = {
        "tile_rows": 64,
        "tile_columns": 64,
        "streaming_stores": False,
        "register_transpose": True,
    }
    values |= {"strips": 2, "skew": 3}
    source, code = tmp_path / "kernel.c", tmp_path / "kernel.s"
    source.write_text(tiled(w, target, **values, prefetch=ahead).source.text)
    command = [
        find_compiler().path,
        *target.compiler_flags,
        "-w",
        "-S",
        str(source),
        "-o",
        str(code),
    ]
    subprocess.run(command, check=True)
    assert ("prefetch" in code.read_text()) == (ahead == "ask")


@pytest.mark.parametrize(("columns", "crowded"), [(512, True), (384, False), (1024, True)])
def test_strips_whose_lines_have_no_room_in_l1_together_move_more(columns, crowded):
    target = machine(l1_bytes=48 << 10, vector_bytes=64, vector_registers=32)
    w = workload(TRANSPOSED, i=columns, j=256)
    space = Space(w, target, [MapTemplate(w, target)])
    values = {"tile_columns": 256, "order": "rows", "register_transpose": True, "workers": 1}
    values |= {"streaming_stores": False, "prefetch": "nothing", "unroll": 1}
    sizes = [(256, 2, 0), (256, 2, 3), (256, 4, 0), (256, 4, 3), (16, 2, 0)]
    schedules = [
        Schedule("map", tuple({**values, "tile_rows": r, "strips": n, "skew": s}.items()))
        for r, n, s in sizes
    ]
    moved = space.quantities(space.rows(schedules))["near_bytes"].tolist()
    level, behind, more, more_behind, alone = moved
    assert (level > behind) == crowded
    assert more >= level
    assert more_behind == behind < alone


def test_only_blocks_of_one_array_that_is_moved_go_straight():
    whole = {"i": 64, "j": 96}
    texts = [
        ("y[j, i] = x[i, j]", whole),
        ("y[j, i] = 2 * x[i, j]", whole),
        ("y[j, i] = x[i, j]; z[j, i] = x[i, j]; -> y, z", whole),
        ("y[j, i] = x[i, j]", {"i": 67, "j": 95}),
        ("y[j, i] = x[i, j]", {"i": 64, "j": machine().lanes(4) - 1}),
        ("y[i, j] = x[i, j]", whole),
    ]
    found = [MapTemplate(workload(text, **n), machine()).goes_straight for text, n in texts]
    assert found == [True, False, False, True, False, False]


@pytest.mark.parametrize(("tile", "packed"), [(64, 0), (128, 2 * 4 * 512 * 512)])
def test_what_goes_straight_passes_through_no_other_memory(tile, packed):
    """The other way its tile passes through L1, or through L2 if L1 has no room for it."""
    w = workload(TRANSPOSED, i=512, j=512)
    space = Space(w, machine(l2_bytes=1 << 20), [MapTemplate(w, machine(l2_bytes=1 << 20))])
    values = {
        "order": "rows",
        "streaming_stores": False,
        "prefetch": "nothing",
        "unroll": 1,
        "workers": 1,
    }
    values |= {"tile_rows": tile, "tile_columns": tile, "strips": 2, "skew": 0}
    schedules = [
        Schedule("map", tuple({**values, "register_transpose": s}.items())) for s in (False, True)
    ]
    found = space.quantities(space.rows(schedules))
    assert found["packing_bytes"].tolist() == [packed, 0]
    assert found["register_bytes"][0] - found["register_bytes"][1] == 2 * 4 * 512 * 512
    assert found["instructions"][0] > found["instructions"][1]
    assert found["near_footprint"][0] > found["near_footprint"][1]
