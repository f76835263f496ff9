"""The CPU template for maps: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from spaces.cpu.maps.rules import LEAST_TILE
from spaces.cpu.maps.template import MapTemplate
from spaces.cpu.target import CpuTarget, detect_cpu
from spaces.kernel import Kernel
from spaces.language import Program
from spaces.operators import workload
from spaces.quantities import QUANTITIES
from spaces.registry import space_for
from spaces.schedule import Schedule, Value
from spaces.space import Space
from spaces.testing.template import silent_rules
from spaces.workloads.served import workload_of
from spaces.workloads.workload import Workload
from tests.spaces.cpu.native import check_bugs_are_found, compile_kernels, complaint
from tests.spaces.derivation.maps.random_maps import random_map

NAMED = {
    "a transposition": "y[j, i] = relu(x[i, j] + b[i])",
    "a permutation": "y[i, k, j] = x[i, j, k] * v[k]",
    "bfloat16": "x: bfloat16; y: bfloat16; y[j, i] = 2 * x[i, j]",
    "two outputs": "y[j, i] = 2 * x[i, j]; z[j, i] = y[j, i] + w[j, i]; -> y, z",
    "gathered rows": "t: int32[i](index < 9); y[i, j] = x[t[i], j]",
    "gathered columns": "t: int32[j](index < 9); y[i, j] = x[i, t[j]]",
    "gathered along a diagonal": "t: int32[j](index < 9); y[i, j] = x[t[j], j]",
    "a diagonal": "y[i, j] = select(j <= i, x[i, j], -1) * d[i + j]",
}
EXTENTS = {"i": 67, "j": 130, "k": 19}


def machine(**changes: int) -> CpuTarget:
    caches = {"l1_bytes": 32 << 10, "l2_bytes": 64 << 10, "l3_bytes": 1 << 20}
    return dataclasses.replace(detect_cpu(), **{"threads": 1, **caches, **changes})


def named(text: str) -> Workload:
    """The program of a text, with the extents that it uses."""
    text = text.replace("int32[i]", "int32[67]").replace("int32[j]", "int32[130]")
    used = {axis: n for axis, n in EXTENTS.items() if re.search(rf"\b{axis}\b", text)}
    return workload(text, **used)


def lowered(w: Workload, target: CpuTarget, count: int, seed: int = 0) -> list[Kernel]:
    space = Space(w, target, [MapTemplate(w, target)])
    rows = np.unique(space.sample(np.random.default_rng(seed), count), axis=0)
    return [space.lower(space.schedule(row)) for row in rows]


def check(w: Workload, target: CpuTarget, count: int, seed: int, folder: Path) -> None:
    kernels = lowered(w, target, count, seed)
    folder.mkdir(exist_ok=True)
    library = compile_kernels(kernels, target, folder)
    assert [complaint(kernel, library, w, seed) for kernel in kernels] == [""] * len(kernels)


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
    check(workload_of(made), machine(threads=threads, cores=threads), 3, seed, folder)


@pytest.mark.parametrize("name", NAMED)
def test_tiles_with_tails_agree_with_the_reference(name, tmp_path):
    check(named(NAMED[name]), machine(), 4, 1, tmp_path)


@pytest.mark.parametrize(("vector_bytes", "isa"), [(16, "generic"), (16, "sse2"), (64, "generic")])
def test_other_vectors(vector_bytes, isa, tmp_path):
    if isa not in ("generic", detect_cpu().isa) and detect_cpu().architecture != "x86_64":
        pytest.skip(f"no {isa} here")
    target = machine(vector_bytes=vector_bytes)
    target = dataclasses.replace(target, isa=isa, bf16_dot=False)
    check(named(NAMED["a transposition"]), target, 3, 0, tmp_path)


# what is broken: pattern, replacement of its first occurrence in every kernel
BUGS = {
    "a border block is one column short": (r"columns - \(4 \* b0\)", "columns - 1 - (4 * b0)"),
    "a border block is one row short": (r"rows - \(4 \* b1\)", "rows - 1 - (4 * b1)"),
    "a block is swapped": (r"192 \* b1 \+ 4 \* b0", "192 * b0 + 4 * b1"),
    "a block overlaps the next": (r"192 \* b1", "144 * b1"),
    "batch for row": (r"x1 \+ a1", "x1 + a0"),
    "the first row for all": (r"const long a1 = row0 \+ r0", "const long a1 = row0"),
    "a step of another array": (r"67 \* a1 \+ a2\)", "67 * a1 + a2 + (a2 > 0))"),
    "a vector is passed over": (r"j \+= 4", "j += 8"),
    "one column too many": (r"left = end - j", "left = end - j + 1"),
    "no last columns": (r"if \(j < end\)", "if (0)"),
    "a tile is left out": (r"t2 < 5; t2", "t2 < 4; t2"),
}


# and of kernels that stream
STREAMED_BUGS = {
    "a tile ends before the next begins": (r"columns, 32 \+ .*\);", "columns, 32);"),
    "what tiles share is not turned": (r"a2, 32 \+ 16", "a2, 32"),
    "the last blocks are not turned": (r"b0_most : 12", "b0_most : 8"),
    "the first columns of a row are left out": (r"a2 \? skew : 0", "skew"),
    "the first tile begins at a line": (r"a2 \? skew : 0", "a2 ? 0 : skew"),
    "a column is passed over before a line": (r"j \+= left\)", "j += left + 1)"),
}


@pytest.mark.parametrize(("stream", "bugs"), [(False, BUGS), (True, STREAMED_BUGS)])
def test_every_planted_bug_is_found(stream, bugs, tmp_path):
    w = named("y[k, j, i] = x[k, i, j] + v[j]")
    target = machine(vector_bytes=16)
    target = dataclasses.replace(target, isa="generic", bf16_dot=False, flags=("-O0",))
    right = tiled(w, target, tile_rows=32, tile_columns=32, stream=stream)
    check_bugs_are_found(right, bugs, w, target, tmp_path)


def tiled(w: Workload, target: CpuTarget, **changes: Value) -> Kernel:
    """The kernel of a schedule with these decisions."""
    values = {"order": "rows", "ahead": True, "unroll": 1, "workers": 1, **changes}
    return Space(w, target, [MapTemplate(w, target)]).lower(Schedule("map", tuple(values.items())))


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
        tiled(w, machine(), tile_rows=r, tile_columns=c, stream=True, ahead=False)
        for r, c in shapes
    ]
    library = compile_kernels(kernels, machine(), tmp_path)
    for kernel in kernels:
        found = [complaint(kernel, library, w, 0, off=off) for off in (0, 1, 5, 15)]
        assert found == [""] * len(found)


MOVED = {
    "turned and not": "y[j, i] = x[i, j]; z[j, i] = w[j, i]; -> y, z",
    "a permutation": "y[i, k, j] = x[i, j, k]",
    "gathered": "t: int32[130](index < 9); y[i, j] = x[i, t[j]]",
    "one for all and every third": "y[i, j] = x[i]; z[i, j] = w[i, 3 * j]; -> y, z",
}
TRANSPOSED = "y[j, i] = x[i, j]"


def moving(text: str, dtype: str, **extents: int) -> Workload:
    """The workload of a text that computes nothing, all of whose arrays but tables have a dtype."""
    dtypes = "".join(f"{name}: {dtype}; " for name in "wxyz" if f"{name}[" in text)
    w = workload(dtypes + text, **extents)
    assert MapTemplate.refuses(w, detect_cpu()) is None
    return w


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_elements_of_every_size_are_moved_as_they_are(dtype, tmp_path):
    for number, text in enumerate(MOVED.values()):
        used = {axis: n for axis, n in EXTENTS.items() if re.search(rf"\b{axis}\b", text)}
        w = moving(text, dtype, **used)
        check(w, machine(), 2, number, tmp_path / str(number))


@pytest.mark.parametrize(("vector_bytes", "dtype"), [(16, "float64"), (64, "int8"), (64, "int32")])
def test_other_vectors_move_elements_of_every_size(vector_bytes, dtype, tmp_path):
    target = machine(vector_bytes=vector_bytes, vector_registers=vector_bytes // 2)
    target = dataclasses.replace(target, isa="generic", bf16_dot=False)
    check(moving(TRANSPOSED, dtype, i=67, j=130), target, 2, 0, tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_tails_of_every_kind_are_moved(dtype, tmp_path):
    for i, j in [(1, 1), (31, 1), (257, 33)]:
        check(moving(TRANSPOSED, dtype, i=i, j=j), machine(), 1, 0, tmp_path / f"{i}x{j}")


# what is broken in a kernel that moves
MOVED_BUGS = {
    "blocks overlap": (r"768 \* b1", "672 * b1"),
    "a border block is one column short": (r"columns - \(8 \* b0\)", "columns - 1 - (8 * b0)"),
    "rows of the tile before": (r"row0 \+ r0", "row0 + 0"),
    "a vector too far": (r"j \+ 16 <= end; j \+= 16", "j + 16 <= end; j += 17"),
    "one too few of the last": (r"left = end - j", "left = end - j - 1"),
}


def test_every_bug_planted_where_elements_are_moved_is_found(tmp_path):
    w = moving("y[k, j, i] = x[k, i, j]", "float16", i=67, j=130, k=19)
    narrow = machine(vector_bytes=32, vector_registers=16)
    target = dataclasses.replace(narrow, isa="generic", flags=("-O0",))
    sizes = {"tile_rows": 32, "tile_columns": 64}
    right = tiled(w, target, **sizes, stream=False, straight=False, skew=0)
    check_bugs_are_found(right, MOVED_BUGS, w, target, tmp_path)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("text", "n"),
    [
        (TRANSPOSED, {"i": 192, "j": 336}),
        ("y[k, j, i] = x[k, i, j]", {"i": 192, "j": 336, "k": 3}),
        (TRANSPOSED, {"i": 195, "j": 257}),
        ("y[k, j, i] = x[k, i, j]", {"i": 81, "j": 530, "k": 3}),
    ],
)
def test_blocks_may_go_straight_from_registers(text, n, dtype, threads, tmp_path):
    w = moving(text, dtype, **n)
    target = machine(threads=threads, cores=threads)
    kernels = [k for k in lowered(w, target, 60) if k.call.workspace_bytes == 0]
    assert len(kernels) > 3
    library = compile_kernels(kernels, target, tmp_path)
    assert [complaint(kernel, library, w, 1) for kernel in kernels] == [""] * len(kernels)


STRAIGHT_BUGS = {
    "a block is passed over": (r"columns / 8", "columns / 8 - 1"),
    "a pair of strips is written twice": (r"i = \(16 \* b0\)", "i = 0"),
    "a step of the other array": (r", 328,", ", 64,"),
    "a strip of a pair is left out": (r"two = .*, blocks", "two = 0, blocks"),
    "both strips are the first": (r"strip = two & ", "strip = 0 & "),
}
SKEWED_BUGS = {
    "no turns are left for the strip behind": (r"blocks \+ 3 \* two", "blocks"),
    "a strip is farther behind": (r" - 3 \* strip", " - 4 * strip"),
    "the first block of a strip is passed over": (r"block < 0", "block < strip"),
    "so is the last": (r"block >= blocks", "block >= blocks - strip"),
}
TAIL_BUGS = {
    "the last columns are left out": (r"\(columns \+ 7\) / 8", "columns / 8"),
    "the last strip is left out": (r"\(16 \* b0\) > 8", "(16 * b0) > 15"),
    "the last pair of strips is left out": (r"\(rows \+ 15\) / 16", "rows / 16"),
    "the last block begins early": (r"columns - 8\)", "columns - 9)"),
    "the last strip begins early": (r"rows - 8\)", "rows - 9)"),
}


@pytest.mark.parametrize(
    ("skew", "columns", "bugs"),
    [
        (0, 64, STRAIGHT_BUGS),
        (3, 64, STRAIGHT_BUGS | SKEWED_BUGS),
        (0, 60, TAIL_BUGS),
        (3, 60, TAIL_BUGS),
    ],
)
def test_every_bug_planted_in_blocks_that_go_straight_is_found(skew, columns, bugs, tmp_path):
    rows = 328 if columns == 64 else 332
    w = moving("y[k, j, i] = x[k, i, j]", "float32", i=columns, j=rows, k=3)
    target = dataclasses.replace(machine(vector_bytes=32), isa="generic", flags=("-O0",))
    sizes = {"tile_rows": 32, "tile_columns": 32}
    right = tiled(w, target, **sizes, straight=True, skew=skew, stream=False, ahead=False)
    check_bugs_are_found(right, bugs, w, target, tmp_path)


@pytest.mark.parametrize(("columns", "crowded"), [(512, True), (384, False), (1024, True)])
def test_strips_whose_lines_have_no_room_in_l1_together_move_more(columns, crowded):
    target = machine(l1_bytes=48 << 10, vector_bytes=64, vector_registers=32)
    w = workload(TRANSPOSED, i=columns, j=256)
    space = Space(w, target, [MapTemplate(w, target)])
    values = {"tile_columns": 256, "order": "rows", "straight": True, "workers": 1}
    values |= {"stream": False, "ahead": False, "unroll": 1}
    sizes = [(256, 0), (256, 3), (16, 0)]
    schedules = [
        Schedule("map", tuple({**values, "tile_rows": rows, "skew": skew}.items()))
        for rows, skew in sizes
    ]
    level, behind, alone = space.quantities(space.rows(schedules))["near_bytes"]
    assert (level > behind) == crowded
    assert alone > behind


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
    values = {"order": "rows", "stream": False, "ahead": False, "unroll": 1, "workers": 1}
    values |= {"tile_rows": tile, "tile_columns": tile, "skew": 0}
    schedules = [Schedule("map", tuple({**values, "straight": s}.items())) for s in (False, True)]
    found = space.quantities(space.rows(schedules))
    assert found["packing_bytes"].tolist() == [packed, 0]
    assert found["register_bytes"][0] - found["register_bytes"][1] == 2 * 4 * 512 * 512
    assert found["instructions"][0] > found["instructions"][1]
    assert found["near_footprint"][0] > found["near_footprint"][1]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"order": "rows"}, {"order": "columns"}),
        ({"ahead": True}, {"ahead": False}),
        ({"tile_columns": 64}, {"tile_columns": 128}),
        ({"stream": False, "ahead": False}, {"stream": False, "ahead": True}),
    ],
)
def test_what_columns_that_are_read_wait_for_counts(better, worse):
    """The next tile reads on where this one ended, lines are asked for before stores that pass the
    caches, and no more columns are read at a time than a core knows pages."""
    w = workload("y[j, i] = relu(x[i, j])", i=2048, j=2048)
    space = Space(w, machine(), [MapTemplate(w, machine())])
    values = {"tile_rows": 64, "tile_columns": 64, "order": "rows", "ahead": True, "stream": True}
    values |= {"unroll": 1, "workers": 1}
    schedules = [Schedule("map", tuple({**values, **v}.items())) for v in (better, worse)]
    less, more = space.quantities(space.rows(schedules))["instructions"]
    assert less < more


def test_wild_indices_are_bounded(tmp_path):
    w = workload("t: int32[40](index < 9); y[i, j] = x[t[i], j] + v[t[j]]", i=40, j=40)
    target = machine()
    kernels = lowered(w, target, 2)
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
        (workload("y: float32[4, 8](leading=9); y[i, j] = x[i, j]", i=4, j=8), "slice"),
        (workload("y[i] = x[i]; z[j] = v[j]; -> y, z", i=4, j=8), "the same axes"),
    ],
)
def test_refusals_say_why(w, words):
    assert words in MapTemplate.refuses(w, detect_cpu())


@pytest.mark.parametrize(("step", "served"), [(14, True), (15, False)])
def test_lanes_gather_from_as_far_apart_as_32_bits_count(step, served):
    columns = 1 << 24  # the last of 9 rows begins 8 * step * columns elements after the first
    w = workload(f"t: int32[{columns}](index < 9); y[j] = x[t[j], {step} * j]", j=columns)
    reason = MapTemplate.refuses(w, detect_cpu())
    assert reason is None if served else "farther apart than 2**31 elements" in reason


def test_a_kernel_says_what_it_writes():
    (kernel, *_) = lowered(named(NAMED["two outputs"]), machine(), 1)
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
def test_quantities_are_finite_and_complete(name):
    w = named(NAMED[name])
    space = Space(w, machine(), [MapTemplate(w, machine())])
    quantities = space.quantities(space.sample(np.random.default_rng(0), 200))
    assert set(quantities) == set(QUANTITIES)
    for quantity, values in quantities.items():
        assert np.isfinite(values).all(), quantity
        assert (values >= 0).all(), quantity
    assert (quantities["flops"] >= quantities["useful_flops"]).all()
    assert (quantities["main_bytes"] >= w.least_bytes).all()
    assert (quantities["epilogue_elements"] == 0).all()
    assert quantities["far_fraction"] == pytest.approx(w.least_bytes / (1 << 20))
    assert (quantities["vector_fraction"] <= 1).all()
    assert (quantities["imbalance"] >= 0.99).all()


def test_square_tiles_that_ask_ahead_begin_fewest_runs_of_neighbours():
    w = workload(TRANSPOSED, i=4096, j=4096)
    template = MapTemplate(w, machine())
    tiles = {"tile_rows": [64, 64, 16, 256], "tile_columns": [64, 64, 256, 16]}
    others = {"ahead": [1, 0, 1, 1], "stream": [1] * 4, "unroll": [2] * 4, "workers": [1] * 4}
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
