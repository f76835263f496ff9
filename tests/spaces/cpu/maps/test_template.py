"""The CPU template for maps: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.maps.checked_maps import (
    EXTENTS,
    MOVED,
    NAMED,
    TRANSPOSED,
    machine,
    moving,
    named,
    space_of,
    tiled,
)
from tests.spaces.cpu.native import check_sampled, compile_kernels, complaint, sampled
from tests.spaces.derivation.maps.random_maps import random_map
from tilewright.spaces.cpu.maps.rules import LEAST_TILE
from tilewright.spaces.cpu.maps.template import MapTemplate
from tilewright.spaces.language import Program
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.served import workload_of


@pytest.mark.parametrize("seed", range(8))
def test_random_maps_agree_with_the_reference(seed, tmp_path):
    check_random(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 40))
def test_more_random_maps_agree_with_the_reference(seed, tmp_path):
    check_random(seed, tmp_path)


def check_random(seed: int, folder: Path) -> None:
    made: Program = random_map(seed, dtypes=("float32", "bfloat16"))
    threads = 1 + seed % 3
    check_sampled(
        space_of(workload_of(made), machine(threads=threads, cores=threads)), 3, seed, folder
    )


SLICES = {
    "read": "x: float32[64,65](leading=100); y[i,j] = 2 * x[i,j]",
    "written": "y: float32[64,65](leading=100); y[i,j] = 2 * x[i,j]",
    "turned": "x: float32[64,65](leading=128); y: float32[65,64](leading=67); y[j,i] = x[i,j]",
    "columns": "x: float32[64,65](order=(1,0), leading=99); y[i,j] = x[i,j] + z[j]",
    "of three dimensions": "y: float32[5,64,65](leading=80); y[k,i,j] = x[i,k,j] + z[k]",
    "of 16 bits": "x: bfloat16[64,65](leading=70); y: bfloat16[65,64](leading=66); y[j,i] = x[i,j]",
    "rows of a table": "t: int32[i](index < 9); w: float32[9,65](leading=72); y[i,j] = w[t[i],j]",
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_of_larger_arrays_agree_with_the_reference(name, tmp_path):
    extents = {"k": 5} if "k" in SLICES[name] else {}
    w = workload(SLICES[name], i=64, j=65, **extents)
    check_sampled(space_of(w, machine(threads=2, cores=2)), 12, 1, tmp_path)


@pytest.mark.parametrize("name", NAMED)
def test_tiles_with_tails_agree_with_the_reference(name, tmp_path):
    check_sampled(space_of(named(NAMED[name]), machine()), 4, 1, tmp_path)


@pytest.mark.parametrize(("vector_bytes", "isa"), [(16, "generic"), (16, "sse2"), (64, "generic")])
def test_other_vectors(vector_bytes, isa, tmp_path):
    if isa not in ("generic", this_cpu().isa) and this_cpu().architecture != "x86_64":
        pytest.skip(f"no {isa} here")
    target = machine(vector_bytes=vector_bytes)
    target = dataclasses.replace(target, isa=isa, bf16_dot=False)
    check_sampled(space_of(named(NAMED["a transposition"]), target), 3, 0, tmp_path)


@pytest.mark.parametrize("text", ["y[j, i] = x[i, j] + v[j]", "y[j, i] = x[j, i] + v[i]"])
@pytest.mark.parametrize(
    ("columns", "rows", "dtype"),
    [(3, 12_011, "float32"), (67, 601, "float32"), (192, 601, "float32"), (193, 601, "bfloat16")],
)
def test_streamed_rows_begin_at_lines_wherever_arrays_do(columns, rows, dtype, text, tmp_path):
    w = workload(text, dtype=dtype, i=columns, j=rows)
    lanes = machine().vector_bytes // 4
    shapes = [(64, c) for c in (lanes, 32, 64) if c == lanes or c < columns]
    kernels = [
        tiled(w, machine(), tile_rows=r, tile_columns=c, streaming_stores=True, prefetch="nothing")
        for r, c in shapes
    ]
    library = compile_kernels(kernels, machine(), tmp_path)
    for kernel in kernels:
        found = [complaint(kernel, library, w, 0, off=off) for off in (0, 1, 5, 15)]
        assert found == [""] * len(found)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_elements_of_every_size_are_moved_as_they_are(dtype, tmp_path):
    for number, text in enumerate(MOVED.values()):
        used = {axis: n for axis, n in EXTENTS.items() if re.search(rf"\b{axis}\b", text)}
        w = moving(text, dtype, **used)
        check_sampled(space_of(w, machine()), 2, number, tmp_path / str(number))


@pytest.mark.parametrize(("vector_bytes", "dtype"), [(16, "float64"), (64, "int8"), (64, "int32")])
def test_other_vectors_move_elements_of_every_size(vector_bytes, dtype, tmp_path):
    target = machine(vector_bytes=vector_bytes, vector_registers=vector_bytes // 2)
    target = dataclasses.replace(target, isa="generic", bf16_dot=False)
    check_sampled(space_of(moving(TRANSPOSED, dtype, i=67, j=130), target), 2, 0, tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_tails_of_every_kind_are_moved(dtype, tmp_path):
    for i, j in [(1, 1), (31, 1), (257, 33)]:
        check_sampled(
            space_of(moving(TRANSPOSED, dtype, i=i, j=j), machine()), 1, 0, tmp_path / f"{i}x{j}"
        )


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"order": "rows"}, {"order": "columns"}),
        ({"prefetch": "ask"}, {"prefetch": "nothing"}),
        ({"tile_columns": 64}, {"tile_columns": 128}),
        (
            {"streaming_stores": False, "prefetch": "nothing"},
            {"streaming_stores": False, "prefetch": "ask"},
        ),
        ({"prefetch": "turn", "tile_columns": 32}, {"prefetch": "ask", "tile_columns": 32}),
    ],
)
def test_what_columns_that_are_read_wait_for_counts(better, worse):
    """The next tile reads on where this one ended, lines are asked for or read before stores that
    pass the caches, and no more columns are read at a time than a core knows pages."""
    w = workload("y[j, i] = relu(x[i, j])", i=2048, j=2048)
    space = Space(w, machine(), [MapTemplate(w, machine())])
    values = {
        "tile_rows": 64,
        "tile_columns": 64,
        "order": "rows",
        "prefetch": "ask",
        "streaming_stores": True,
    }
    values |= {"unroll": 1, "workers": 1}
    schedules = [Schedule("map", tuple({**values, **v}.items())) for v in (better, worse)]
    less, more = space.quantities(space.rows(schedules))["instructions"]
    assert less < more


def test_wild_indices_are_bounded(tmp_path):
    w = workload("t: int32[40](index < 9); y[i, j] = x[t[i], j] + v[t[j]]", i=40, j=40)
    target = machine()
    kernels = sampled(space_of(w, target), 2)
    library = compile_kernels(kernels, target, tmp_path)
    inputs = w.make_inputs(0)
    wild = {**inputs, "t": np.where(np.arange(40) % 2, 2_000_000_000, -7).astype(np.int32)}
    tame = {**inputs, "t": np.clip(wild["t"], 0, 8)}
    found = [complaint(kernel, library, w, 0, wild, meant=tame) for kernel in kernels]
    assert not any(found), found


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a map reduces nothing"),
        (workload("softmax", r=4, c=8), "a map reduces nothing"),
        (workload("map", m=4, n=8, expression="2 * x[m, n]", dtype="float64"), "float64"),
        (workload("y[i] = x[i]; z[j] = v[j]; -> y, z", i=4, j=8), "the same axes"),
    ],
)
def test_refusals_say_why(w, words):
    assert words in MapTemplate.why_not(w, this_cpu())


@pytest.mark.parametrize(("step", "narrow"), [(14, True), (16, False)])
def test_lanes_gather_from_farther_apart_than_32_bits_count(step, narrow):
    columns = 1 << 24  # the last of 9 rows begins 8 * step * columns elements after the first
    w = workload(f"t: int32[{columns}](index < 9); y[j] = x[t[j], {step} * j]", j=columns)
    (kernel, *_) = sampled(space_of(w, machine()), 1)
    assert ("tw_scattered_float32(" in kernel.source.body) == narrow
    assert ("tw_scattered_wide_float32(" in kernel.source.body) != narrow


def test_a_kernel_says_what_it_writes():
    (kernel, *_) = sampled(space_of(named(NAMED["two outputs"]), machine()), 1)
    assert [array.name for array in kernel.call.written] == ["y", "z"]


def test_names_and_writing_make_no_difference_to_the_space():
    first = workload("y[j, i] = relu(x[i, j] + b[i])", i=300, j=200)
    other = workload("v[q, p] = relu(c[p] + u[p, q])", p=300, q=200)
    spaces = [space_for(w, machine()) for w in (first, other)]
    rows = [space.sample(np.random.default_rng(0), 50) for space in spaces]
    assert spaces[0].count() == spaces[1].count() > 20
    assert (rows[0] == rows[1]).all()


def test_every_rule_refuses_something_and_says_why():
    made = [named(NAMED["a transposition"]), workload("swiglu", r=500, c=3000)]
    made.append(workload("y[j, i] = x[i, j]", i=3, j=5))
    made.append(workload("y[j, i] = x[i, j]", i=64, j=512))
    target = machine(threads=8, cores=8)
    assert not silent_rules([Space(w, target, [MapTemplate(w, target)]) for w in made], 400)


@pytest.mark.parametrize("name", NAMED)
def test_quantities_are_complete_and_possible(name):
    w = named(NAMED[name])
    space = Space(w, machine(), [MapTemplate(w, machine())])
    quantities = checked_quantities(space, seed=0, schedules=200)
    assert (quantities["flops"] >= quantities["useful_flops"]).all()
    assert (quantities["epilogue_elements"] == 0).all()
    assert quantities["far_fraction"] == pytest.approx(w.least_bytes / (1 << 20))


def test_square_tiles_that_ask_ahead_begin_fewest_runs_of_neighbours():
    w = workload(TRANSPOSED, i=4096, j=4096)
    template = MapTemplate(w, machine())
    tiles = {"tile_rows": [64, 64, 16, 256], "tile_columns": [64, 64, 256, 16]}
    others = {
        "prefetch": ["ask", "nothing", "ask", "ask"],
        "streaming_stores": [1] * 4,
        "unroll": [2] * 4,
        "workers": [1] * 4,
    }
    others |= {"order": ["rows"] * 4}
    columns = {name: np.array(values) for name, values in (tiles | others).items()}
    instructions = template.quantities(columns)["instructions"]
    assert (instructions[1:] > instructions[0]).all()


def test_a_tile_of_as_many_elements_as_are_worth_a_call_is_allowed():
    w = workload("y[j, i] = x[i, j]", i=1024, j=1024)
    space = Space(w, machine(), [MapTemplate(w, machine())])
    schedules = [space.schedule(row) for row in space.sample(np.random.default_rng(0), 2000)]
    sizes = [s["tile_rows"] * s["tile_columns"] for s in schedules]
    assert min(sizes) == LEAST_TILE == 512
