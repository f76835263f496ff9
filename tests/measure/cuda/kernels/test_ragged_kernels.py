"""Kernels over ranges on a GPU: graphs of every kind and planted bugs on the emulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.language.ragged_programs import BODIES, SCORES, extents_of, graphs, inputs_of
from tests.spaces.language.ragged_programs import text_of as text_of_program
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.cuda.ragged.template import CudaRagged, CudaTurnedRagged
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
PLAIN: dict[str, int | str] = {
    "vector": 1,
    "vectors": 1,
    "column_threads": 1,
    "entry_threads": 1,
    "unroll": 1,
    "threads": 64,
    "parallel_over": "rows",
    "team_items": 32,
    "stores": "cached",
}
SIZES = {"c": 13, "d": 9, "i": 3}


def ragged(name: str, pointers: bool = False, kinds: str = "", **more: int) -> Workload:
    text = kinds + text_of_program(name, pointers, 20)
    return workload(text, **extents_of(name, **{"rows": 20, "entries": 90, **SIZES, **more}))


def scores(name: str) -> Workload:
    tables = "row: int32[e](index < 50); col: int32[e](index < 40); "
    heads = {"h": 2} if "h," in SCORES[name] else {}
    return workload(tables + SCORES[name], e=150, d=37, **heads)


def weights(rows: int, more: str = "") -> Workload:
    """Rows of activations times a sparse weight, whose entries gather elements that lie apart."""
    head = text_of_program("sparse times dense", True, 20).rpartition(";")[0]
    body = f"y[m,r] = sum[e](val[e] * a[m,col[e]]){more}"
    return workload(f"{head.replace('col: int32', 'col: uint16')}; {body}", r=20, e=400, m=rows)


def space_of(w: Workload) -> Space:
    return Space(w, H200, [CudaRagged(w, H200)])


def lowered(w: Workload, kind: type[CudaRagged] = CudaRagged, /, **values: int | str) -> Kernel:
    return kind(w, H200).lower(Schedule(kind.name, tuple((PLAIN | values).items())))


@deferred
def case(w: Workload, kind: type[CudaRagged] = CudaRagged, /, **values: int | str) -> Case:
    """The workload, and the kernel of a schedule."""
    return w, lowered(w, kind, **values)


WARP = {"column_threads": 8, "entry_threads": 4, "vector": 2}
SHARED = {"column_threads": 8, "vector": 2, "parallel_over": "entries", "unroll": 2}
HALVES = "x: bfloat16; y: bfloat16; val: bfloat16; "
CASES = {
    "a thread a row": case(ragged("sparse times dense", True)),
    "a warp a row": case(ragged("sparse times dense"), **WARP, unroll=4),
    "several rows of a warp": case(
        ragged("mean", True), column_threads=4, entry_threads=2, vector=4, unroll=2
    ),
    "shared": case(ragged("sparse times dense", True), **SHARED),
    "shared by warps": case(
        ragged("mean"), column_threads=32, parallel_over="entries", stores="stream"
    ),
    "shared, columns in turns": case(
        ragged("messages", True, c=40), **SHARED | {"column_threads": 2, "vectors": 2}
    ),
    "shared blocks": case(ragged("blocks", True), **SHARED | {"vector": 1}),
    "greatest, shared": case(ragged("greatest"), **SHARED),
    "halves": case(
        ragged("sparse times dense", True, HALVES, c=24),
        **SHARED | {"vector": 8, "column_threads": 4},
    ),
    "long rows": case(ragged("sparse times dense", True, rows=4, entries=700, c=8), **WARP),
    "attention": case(ragged("attention"), column_threads=4, entry_threads=2, unroll=2),
    "heads": case(ragged("heads", True), column_threads=8, entry_threads=4, vector=2),
    "places": case(ragged("places", True), **WARP, unroll=2),
    "places of edges": case(ragged("places of edges"), entry_threads=16),
    "sparse times vector": case(ragged("sparse times vector", True), entry_threads=8, unroll=2),
    "weights": case(weights(8), entry_threads=8, vectors=2, unroll=4),
    "weights, columns beyond": case(
        weights(5, "; z[m,r] = relu(y[m,r] + b[r])"), entry_threads=32, vectors=4, threads=128
    ),
    "weights, turned": case(weights(8), CudaTurnedRagged, entry_threads=32, vector=4, vectors=2),
    "weights, turned, shared": case(
        weights(5, "; z[m,r] = relu(y[m,r] + b[r])"), CudaTurnedRagged, **SHARED
    ),
    "scores": case(scores("scores"), column_threads=4, entry_threads=2, vector=4, unroll=2),
    "scores of heads": case(scores("scores of heads"), column_threads=8, entry_threads=4),
}

# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "the first entry is left out": ("a thread a row", r"int e = first;", "int e = first + 1;"),
    "the last entry is left out": ("a thread a row", r"e < stop;", "e < stop - 1;"),
    "another row's end": ("a thread a row", r"x0 \+ a0 \+ 1\)", "x0 + a0)"),
    "an entry that is not there": ("a warp a row", r"is1 = e \+ 4 < end", "is1 = true"),
    "an entry's weight is another's": ("a warp a row", r"x2 \+ e1\b", "x2 + e"),
    "another node's row": ("a warp a row", r"13 \* t\d+", "13"),
    "a group is left out": ("a warp a row", r"tw::shuffle_xor\(s\[1\], 16\);", "0.0f;"),
    "columns that are not there": ("a warp a row", r"\(13 - \(", "(14 - ("),
    "a row too early": ("a warp a row", r"middle\) < row", "middle) <= row"),
    "a row that is not there": ("several rows of a warp", r"team < 20 && ", ""),
    "another warp's turns": ("scores", r"mask = TEAM", "mask = 32"),
    "a head is finished": ("shared", r"begins \|\| a0 > row0", "true"),
    "a whole row is left": ("shared", r"begins = items - row0 <= begin", "begins = false"),
    "a tail is lost": ("shared", r"row1 < 20 && ", "row1 < 0 && "),
    "a tail for a head": ("shared", r"\(i64\)\(2 \* team\)", "(i64)(2 * team + 1)"),
    "a part of another team": ("shared", r"\(2 \* team \+ 1\)", "(2 * (team / 2) + 1)"),
    "rows before a team's": ("shared", r"last \+ middle < items", "last + middle <= items"),
    "a team's end is another's": ("shared", r"next - row1", "next - row0"),
    "a row's end is passed": ("shared", r"end <= e1", "end <= e"),
    "an entry of the next row": ("shared", r"end <= e &&", "end < e &&"),
    "a state is not cleared": ("shared", r"s\[1\] = 0.0f;", ""),
    "a row is passed over": ("shared", r"a0 = a0 \+ 1;", "a0 = a0 + 2;"),
    "rows without entries are left out": ("shared", r"while \(a0 < row1\)", "while (false)"),
    "an entry counts twice": ("shared", r"is1 = e \+ 1 < last", "is1 = true"),
    "a row is not remembered": ("shared", r"\? row0 : -1", "? -1 : -1"),
    "a whole row is joined": ("shared", r"row1 && items - row0 > .*? \?", "row1 ?"),
    "the first part is left out": ("shared", r"part = first;", "part = first + 1;"),
    "the last part is left out": ("shared", r"part < team \+ 1", "part < team"),
    "a tail is joined as a head": ("shared", r"part < team \? 1 : 0", "1"),
    "no clean start": ("shared", r"s\[2\] = \{0.0f", "s[2] = {1.0f"),
    "a block is lost": ("long rows", r"tw_add_block\(before\[0\], excess\[0\], s\[0\]\);", ""),
    "a block counts twice": ("long rows", r"s\[0\] = 0.0f;", ""),
    "results are read before they are stored": ("attention", r"tw::sync_warp\(\);", ""),
    "the greatest of another row": ("attention", r"\(i64\)a0 \* 4", "(i64)(a0 / 2) * 4"),
    "the place of another entry": ("places", r"to_float\(h3\[0\]\), e1\b", "to_float(h3[0]), e"),
    "the place of no entry": ("places", r"begin < end \? ", "true ? "),
    "an edge of another thread": ("places of edges", r"tw::shuffle_xor\(p\[0\], 8\)", "p[0]"),
    "a column that is not there": ("weights, columns beyond", r"1 < \(5 - column0\)", "true"),
    "columns begin anew": ("weights", r"column0 \+= 2", "column0 += 4"),
    "another column's element": ("weights", r"20 \* column0 \+ 20\)", "20 * column0)"),
    "a thread's entries are left out": ("weights", r"tw::shuffle_xor\(s\[0\], 4\);", "0.0f;"),
    "threads read the same entries": ("weights", r"e = \(worker % 8\)", "e = (worker % 2)"),
    "an element is not turned": ("weights, turned", r"number < 160\)", "number < 159)"),
    "another element is turned": ("weights, turned", r"number % 8", "(number + 1) % 8"),
    "what is turned is not read": ("weights, turned", r"h2, \(\(const .*? 0\)\)", "h2, x3"),
    "a dot product's part": ("scores", r"tw::shuffle_xor\(s\[1\], 1\);", "0.0f;"),
}  # fmt: skip


class TestRaggedKernels(KernelContract):
    cases, bugs = CASES, BUGS


def faults(
    emulator: Emulator,
    w: Workload,
    kernels: Iterable[Kernel],
    given: Mapping[str, Mapping[str, np.ndarray]],
) -> list[str]:
    """Call each kernel with all inputs; return the faults."""
    found = []
    for name, inputs in given.items():
        bounds = allowed(w.program, inputs)
        for number, kernel in enumerate(kernels):
            order = INTERLEAVINGS[number % len(INTERLEAVINGS)]
            result = emulator.run(kernel, w.given(inputs), order)
            if result.error_kind is not None:
                found.append(f"{name}: {result.error_text}")
            elif not all(agrees(result.outputs[o], *bounds[o]).all() for o in bounds):
                found.append(f"{name}: {number} is wrong")
    return found


@pytest.mark.parametrize("pointers", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_random_kernels_are_right_on_graphs_of_every_kind(emulator, name, pointers):
    w = ragged(name, pointers)
    space = space_of(w)
    rows = space.sample(np.random.default_rng(len(name) + pointers), 2)
    kernels = [space.lower(space.schedule(row)) for row in rows]
    emulator.build(kernels)
    given = {kind: inputs_of(w.program, rows) for kind, rows in graphs(20, 90).items()}
    assert not faults(emulator, w, kernels, given)


def test_rows_that_end_anywhere_in_a_team(emulator):
    """Pointers at every boundary, and entries that belong to no row."""
    w = ragged("mean", True, rows=3, entries=70, c=4)
    kernels = [
        lowered(w, **SHARED),
        lowered(w, column_threads=4, parallel_over="entries", unroll=4),
    ]
    emulator.build(kernels)
    inputs = inputs_of(w.program, np.zeros(70, np.int32))
    tables = {f"a row of {n}": (0, n, n + 1, 70) for n in range(70)}
    tables |= {f"from {n} on": (n, n, 64, 64) for n in (1, 31, 32, 33)}
    tables |= {"no entries": (0, 0, 0, 0), "none at all": (70, 70, 70, 70)}
    given = {k: {**inputs, "ptr": np.array(t, np.int32)} for k, t in tables.items()}
    assert not faults(emulator, w, kernels, given)


@pytest.mark.parametrize("pointers", [False, True])
@pytest.mark.parametrize("name", ["sparse times dense", "heads", "places"])
def test_whatever_tables_hold_kernels_end_within_their_arrays(emulator, name, pointers):
    """Rows that overlap may store different values of an entry."""
    w = ragged(name, pointers)
    space = space_of(w)
    rows = space.sample(np.random.default_rng(1), 3)
    kernels = [space.lower(space.schedule(row)) for row in rows]
    emulator.build(kernels)
    generator = np.random.default_rng(0)
    for low, high in ((-9, 400), (-(2**31), 2**31 - 1)):
        inputs = w.make_inputs(0)
        for table in {"row", "ptr", "col"} & inputs.keys():
            wild = generator.integers(low, high, inputs[table].shape)
            inputs[table] = wild.astype(np.int32)
        for kernel in kernels:
            result = emulator.run(kernel, w.given(inputs))
            assert result.error_kind in (None, ErrorKind.WRONG), result.error_text


def test_results_are_the_same_in_any_order(emulator):
    w = ragged("sparse times dense", True)
    kernel = lowered(w, **SHARED)
    inputs = w.given(inputs_of(w.program, graphs(20, 90)["one long row"]))
    first, *others = (emulator.run(kernel, inputs, order).outputs["y"] for order in INTERLEAVINGS)
    assert all(np.array_equal(first, other) for other in others)
