"""The CPU template over ranges of entries: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import (
    check_bugs_are_found,
    check_sampled,
    compile_kernels,
    complaint,
    outcome,
    sampled,
)
from tests.spaces.language.ragged_programs import (
    BODIES,
    SCORES,
    extents_of,
    graphs,
    inputs_of,
    text_of,
)
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.ragged.template import RaggedTemplate, TurnedRagged
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import serving
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

SIZES = {"c": 37, "d": 19, "i": 3}


def machine(**changes: Any) -> CpuTarget:
    return dataclasses.replace(this_cpu(), **{"threads": 1, **changes})


def ragged(name: str, pointers: bool = False, **more: int) -> Workload:
    text = text_of(name, pointers, more.pop("nodes", 50))
    return workload(text, **extents_of(name, **{"rows": 50, "entries": 300, **SIZES, **more}))


def space_of(
    w: Workload, target: CpuTarget, template: type[RaggedTemplate] = RaggedTemplate
) -> Space:
    return Space(w, target, [template(w, target)])


@pytest.mark.parametrize("name", BODIES)
def test_kernels_agree_with_the_reference(name, tmp_path):
    pointers = len(name) % 2 == 0
    target = machine(threads=1 + len(name) % 3, cores=3)
    check_sampled(space_of(ragged(name, pointers), target), 2, 1, tmp_path)


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_entries_agree_with_the_reference(name, tmp_path):
    """Entries belong to no rows: tables alone choose what each of them is made of."""
    tables = "row: int32[e](index < 50); col: int32[e](index < 40); "
    heads = {"h": 2} if "h," in SCORES[name] else {}
    w = workload(tables + SCORES[name], e=300, d=37, **heads)
    check_sampled(space_of(w, machine(threads=3, cores=3)), 4, 1, tmp_path)


@pytest.mark.parametrize("pointers", [False, True])
def test_graphs_of_every_kind(pointers, tmp_path):
    """With rows shared by one worker, and split between more workers than there are rows."""
    w = ragged("mean", pointers, rows=12, entries=40, c=12)
    target = machine(threads=30, cores=30)
    choices = [("rows", 1, 1), ("rows", 3, 4), ("entries", 3, 2), ("entries", 30, 1)]
    space = space_of(w, target)
    vectors = ceil_div(12, target.lanes(4))
    kernels = [
        space.lower(_schedule(vectors, u, 4, share, workers)) for share, workers, u in choices
    ]
    library = compile_kernels(kernels, target, tmp_path)
    for rows in graphs(12, 40).values():
        inputs = inputs_of(w.program, rows)
        for kernel in kernels:
            assert complaint(kernel, library, w, 0, inputs) == ""


def _schedule(
    vectors: int,
    unroll: int,
    ahead: int,
    share: str,
    workers: int,
    template: str = "ragged",
) -> Schedule:
    stream = 256 if unroll > 1 else 0
    values = {"vectors": vectors, "unroll": unroll, "prefetch": ahead, "stream_prefetch": stream}
    values |= {"parallel_over": share, "workers": workers}
    return Schedule(template, tuple(values.items()))


def test_long_rows_are_added_up_in_blocks(tmp_path):
    w = ragged("sparse times dense", entries=3000, rows=4, c=8)
    rows = np.sort(np.arange(3000) // 2900)
    target = machine(threads=3, cores=3)
    kernels = sampled(space_of(w, target), 6)
    library = compile_kernels(kernels, target, tmp_path)
    inputs = inputs_of(w.program, rows)
    for kernel in kernels:
        assert complaint(kernel, library, w, 0, inputs) == ""


# columns of activations that are less than a vector, half of one, whole ones, and all of these
WEIGHTS = "y[m,r] = sum[e](val[e] * a[m,col[e]])"
TURNED = {
    **{f"{m} rows": (WEIGHTS, {"m": m}) for m in (1, 3, 4, 8, 12, 16, 24, 37)},
    "an epilogue": (f"{WEIGHTS}; z[m,r] = relu(y[m,r] + bias[r]) * g[m,r]; -> z, y", {"m": 8}),
    "heads": ("y[h,m,r] = max[e](a[m,h,col[e]] + val[e])", {"m": 5, "h": 3}),
    "rows first": ("y[r,m] = mean[e](a[m,col[e]])", {"m": 20}),
    "places": ("y[m,r] = argmax[e](a[m,col[e]])", {"m": 9}),
    "two tables": ("y[m,r] = sum[e](a[m,col[e]] * b[m,row[e]])", {"m": 8}),
}


def weights(name: str, pointers: bool, kind: str = "uint16", **more: int) -> Workload:
    body, extents = TURNED[name]
    text = text_of("sparse times dense", pointers, 50).replace("col: int32", f"col: {kind}")
    head, _, _ = text.rpartition(";")
    return workload(f"{head}; {body}", r=50, e=300, **extents, **more)


@pytest.mark.parametrize("name", TURNED)
def test_kernels_of_turned_arrays_agree_with_the_reference(name, tmp_path):
    target = machine(threads=1 + len(name) % 3, cores=3)
    w = weights(name, len(name) % 2 == 0 and name != "two tables")
    check_sampled(space_of(w, target, TurnedRagged), 3, 1, tmp_path)


@pytest.mark.parametrize("kind", ["bfloat16", "float64"])
@pytest.mark.parametrize("m", [5, 8, 16])
def test_turned_arrays_of_other_dtypes(kind, m, tmp_path):
    head, _, _ = text_of("sparse times dense", True, 50).rpartition(";")
    w = workload(f"a: {kind}; y: {kind}; val: {kind}; {head}; {WEIGHTS}", r=20, e=90, m=m)
    check_sampled(space_of(w, machine(threads=2, cores=2), TurnedRagged), 3, 0, tmp_path)


def test_turned_graphs_of_every_kind(tmp_path):
    w = weights("8 rows", True)
    target = machine(threads=30, cores=30)
    choices = [("rows", 1, 1), ("rows", 3, 4), ("entries", 3, 2), ("entries", 30, 1)]
    space = space_of(w, target, TurnedRagged)
    kernels = [space.lower(_schedule(1, u, 4, s, n, "ragged_turned")) for s, n, u in choices]
    library = compile_kernels(kernels, target, tmp_path)
    for rows in graphs(50, 300).values():
        inputs = inputs_of(w.program, rows)
        for kernel in kernels:
            assert complaint(kernel, library, w, 0, inputs) == ""


@pytest.mark.parametrize(
    "body",
    [
        "y[r] = sum[e](val[e] * a[col[e]])",
        "y[r,m] = sum[e](val[e] * a[col[e],m])",
        "y[r,m] = sum[e](a[col[e]] * b[m,r])",
    ],
)
def test_nothing_is_turned_where_nothing_would_be_beside_another(body):
    head, _, _ = text_of("sparse times dense", True, 50).rpartition(";")
    extents = {"m": 7} if "m]" in body or "m," in body else {}
    w = workload(f"{head}; {body}", r=5, e=40, **extents)
    assert "would be neighbours" in TurnedRagged.why_not(w, machine())


@pytest.mark.parametrize("kind", ["uint16", "int8", "int64"])
def test_tables_of_every_width_are_looked_up(kind, tmp_path):
    text = text_of("sparse times vector", True, 50).replace("col: int32", f"col: {kind}")
    w = workload(text, r=50, e=300)
    check_sampled(space_of(w, machine(threads=2, cores=2)), 4, 1, tmp_path)


@pytest.mark.parametrize("kind", ["bfloat16", "float64"])
def test_other_dtypes(kind, tmp_path):
    text = f"x: {kind}; y: {kind}; val: {kind}; {text_of('sparse times dense', True, 50)}"
    w = workload(text, r=20, e=90, c=21)
    check_sampled(space_of(w, machine(threads=2, cores=2)), 3, 0, tmp_path)


@pytest.mark.parametrize(("vector_bytes", "isa"), [(16, "generic"), (64, "generic")])
def test_other_vectors(vector_bytes, isa, tmp_path):
    target = dataclasses.replace(machine(vector_bytes=vector_bytes), isa=isa, bf16_dot=False)
    check_sampled(space_of(ragged("attention"), target), 2, 0, tmp_path)


@pytest.mark.parametrize("pointers", [False, True])
@pytest.mark.parametrize("name", ["sparse times dense", "heads", "places"])
def test_whatever_tables_hold_kernels_end_within_their_arrays(name, pointers, tmp_path):
    w = ragged(name, pointers)
    target = machine(threads=3, cores=3)
    kernels = sampled(space_of(w, target), 3)
    library = compile_kernels(kernels, target, tmp_path)
    generator = np.random.default_rng(0)
    for low, high in ((-9, 400), (-(2**31), 2**31 - 1)):
        inputs = w.make_inputs(0)
        for table in {"row", "ptr", "col"} & inputs.keys():
            wild = generator.integers(low, high, inputs[table].shape)
            inputs[table] = wild.astype(np.int32)
        for kernel in kernels:
            outcome(kernel, library, inputs)


def test_a_sparse_matrix_of_scipy_gives_the_same(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    w = ragged("sparse times dense", pointers=True, rows=200, nodes=300, entries=2000, c=33)
    (kernel, *_) = sampled(space_of(w, machine()), 1)
    library, inputs = compile_kernels([kernel], machine(), tmp_path), w.make_inputs(3)
    matrix = sparse.csr_matrix((inputs["val"], inputs["col"], inputs["ptr"]), (200, 300))
    found = np.zeros((200, 33), np.float32)
    arrays = {**inputs, "y": found}
    given = [np.ascontiguousarray(arrays[a.array.name]) for a in kernel.call.arguments]
    buffers = (ctypes.c_void_p * len(given))(*(array.ctypes.data for array in given))
    workspace = np.zeros(kernel.call.workspace_bytes + 64, np.uint8)
    place = ctypes.c_void_p((workspace.ctypes.data + 63) // 64 * 64)
    getattr(library, kernel.call.entry)(buffers, place, None)
    np.testing.assert_allclose(given[-1], matrix @ inputs["x"], 1e-4, 1e-4)


# what is broken: pattern, replacement of its first occurrence in the kernel
BUGS = {
    "the first entry is left out": (r"long e = begin;", "long e = begin + 1;"),
    "the last entry is left out": (r"const long stop = end;", "const long stop = end - 1;"),
    "an entry counts twice": (r"(s0_0 = tw_fma\(.*, s0_0\);)", r"\1 \1"),
    "another row's start": (r"starts\[r \+ 1\], begin", "starts[r], begin"),
    "a head is left out": (r"if \(end > low\)", "if (end > high)"),
    "a tail is left out": (r"if \(end <= high\) (\w)", r"if (1) \1"),
    "no clean start": (r"vf s0_1 = tw_set\(0.0f\)", "vf s0_1 = tw_set(1.0f)"),
    "the second group is lost": (r"s0_0 = s0_0 \+ s1_0;", ""),
    "a part is not joined": (r"v < 3 &&", "v < 2 &&"),
    "the last lanes of another vector": (r"(x4 \+ [^;]*) \+ 16, y\d+_0, 4\)", r"\1 + 12, s0_1, 4)"),
    "another node's row": (r"tw_entry\(x1\[", "tw_entry(1 + x1["),
    "the weight of the next entry": (
        r"tw_splat_float32\(x2 \+ (\w+)\)",
        r"tw_splat_float32(x2 + \1 + (\1 < 39))",
    ),
}


TURNING_BUGS = {
    "the first rows are not turned": (r"i1 = first; (i1 < last)", r"i1 = first + 1; \1"),
    "a column is left out": (r"i0 = 0; (i0 < 8)", r"i0 = 1; \1"),
    "another column": (r"turned\[i0 \+", "turned[(i0 ^ 1) +"),
    "an output is not given back": (r"tw_\w*_give\(&call, 0\);", ""),
    "another result": (r"= turned\[i0 \+ 8 \* i1\]", "= turned[i0]"),
}


def test_every_planted_bug_of_turning_is_found(tmp_path):
    w = weights("8 rows", True)
    target = dataclasses.replace(machine(vector_bytes=64), isa="generic", flags=("-O0",))
    target = dataclasses.replace(target, bf16_dot=False)
    right = space_of(w, target, TurnedRagged).lower(_schedule(1, 2, 0, "rows", 1, "ragged_turned"))
    inputs = [inputs_of(w.program, rows) for rows in graphs(50, 300).values()]
    check_bugs_are_found(right, TURNING_BUGS, w, target, tmp_path, inputs)


def test_every_planted_bug_is_found(tmp_path):
    w = ragged("sparse times dense", True, rows=6, entries=40, c=20)
    target = machine(threads=3, cores=3, vector_bytes=64)
    target = dataclasses.replace(target, isa="generic", bf16_dot=False, flags=("-O0",))
    right = space_of(w, target).lower(_schedule(2, 2, 0, "entries", 3))
    inputs = [inputs_of(w.program, rows) for rows in graphs(6, 40).values()]
    check_bugs_are_found(right, BUGS, w, target, tmp_path, inputs)


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a product of matrices"),
        (workload("softmax", r=4, c=8), "no sorted table and no pointers"),
        (
            workload("t: int32[i](index < 9); y[i,n] = sum[k](x[t[i],k] * w[n,k])", i=5, n=8, k=7),
            "product of matrices",
        ),
        (workload(text_of("greatest") + "; z[r,c] = y[r,c] + r; -> z", r=5, e=9, c=4), "axes"),
        (workload("x: float16; y: float16; " + text_of("greatest"), r=5, e=9, c=4), "float16"),
        (workload(text_of("greatest").replace("ax[e]", "ax[e: e > 2]"), r=5, e=9, c=4), "bounds"),
    ],
)
def test_refusals_say_why(w, words):
    assert words in RaggedTemplate.why_not(w, this_cpu())


def test_no_kernel_of_rectangles_serves_what_ranges_do():
    found = serving(ragged("attention"), machine())
    assert not isinstance(found, str)
    assert [template.name for template in found.templates] == ["ragged"]


def test_quantities_are_possible_and_grow_with_entries():
    few, many = (
        checked_quantities(space_of(ragged("heads", entries=e), machine(threads=2)), 1, 32)
        for e in (300, 3000)
    )
    for name in ("flops", "instructions", "near_bytes"):
        assert many[name].min() > few[name].max()


def test_every_rule_refuses_something_and_says_why():
    target = machine(threads=8, cores=8)
    large = ragged("sparse times dense", entries=300_000, rows=5000, c=300)
    works = (ragged("sparse times dense", entries=5), ragged("attention"), large)
    assert not silent_rules([space_of(w, target) for w in works], 120)
