"""Kernels of random programs on inputs at the edges: NaN and infinite where the program is, within
what is allowed elsewhere, and never outside of their arrays."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from tests.kernels import planted
from tests.spaces.cpu.fenced import Beginning, Ending, apart
from tests.spaces.cpu.native import Guarded, Run, compile_apart, here, outcome
from tests.spaces.edge_inputs import edge_inputs, in_single, wrong
from tests.spaces.edge_programs import Case, cases
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.contraction import Contraction
from tilewright.spaces.workloads.served import names_in_matmul

TARGET = dataclasses.replace(detect_cpu(), threads=3, cores=3)


def lying_in(values: np.ndarray, array: Array) -> np.ndarray:
    """The elements of a dense array as those of another of as many, where memory is the same."""
    ordered = values.reshape([array.shape[d] for d in array.order])
    return ordered.transpose(np.argsort(array.order))


def lying_as(values: np.ndarray, array: Array, shape: tuple[int, ...]) -> np.ndarray:
    """The same the other way round."""
    return values.transpose(array.order).reshape(shape)


@dataclasses.dataclass(frozen=True)
class Place:
    """How kernels are compiled, where their arrays lie, and who calls them."""

    flags: tuple[str, ...] = ()
    memory: type[Guarded] = Guarded
    run: Run = here


HERE = Place()
TRAPS = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-Wno-maybe-uninitialized")
"""Flags with which code that has no meaning in C ends its process."""
BETWEEN_WALLS = tuple(Place((), memory, apart) for memory in (Ending, Beginning))
TRAPPED = tuple(dataclasses.replace(place, flags=TRAPS) for place in BETWEEN_WALLS)


def complaints(case: Case, schedules: int, places: Sequence[Place] = (HERE,)) -> list[str]:
    """What is wrong with kernels of a case in any of the ``places``, which have the same flags; of
    one that no template serves nothing is."""
    text, extents, fills, seed = case
    w = workload(text, **extents)
    try:
        space = space_for(w, TARGET)
    except InputError:
        return []
    names = names_in_matmul(w.program) if isinstance(w, Contraction) else {}
    rows = np.unique(space.sample(np.random.default_rng(seed), schedules), axis=0)
    chosen = [space.schedule(row) for row in rows]
    kernels = [space.lower(schedule) for schedule in chosen]
    inputs = edge_inputs(w.program, fills, seed)
    own = {name: inputs[names.get(name, name)] for name in (o.name for o in w.inputs)}
    given = {o.name: lying_in(own[o.name], o) for o in w.inputs} if names else inputs
    exact, single = evaluate(w.program, inputs), in_single(w.program, inputs)
    bounds = allowed(w.program, inputs)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        libraries = compile_apart(kernels, TARGET, Path(folder), *places[0].flags)
        built = zip(chosen, kernels, libraries, strict=True)
        for (schedule, kernel, library), place in product(built, places):
            failed, results = outcome(kernel, library, given, 1, place.memory, place.run)
            for name, output in zip(exact, w.outputs, strict=True) if not failed else ():
                values = results[output.name]
                values = lying_as(values, output, exact[name].shape) if names else values
                bad = wrong(values, exact[name], single[name], *bounds[name])
                if bad.any():
                    at = tuple(np.argwhere(bad)[0].tolist())
                    value, meant = values[at], exact[name][at]
                    failed = f"{bad.sum()} of {name} wrong; at {at} {value} for {meant}"
            found += [f"{schedule}: {failed}"] * bool(failed)
    return found


KNOWN = {
    "a temperature, and nothing but -inf at first": (
        "m[r] = max[c](x[r,c]); q[r] = sum[c](exp((x[r,c] - m[r]) * 3.5)); "
        "y[r,c] = exp((x[r,c] - m[r]) * 3.5) / q[r]",
        {"r": 3, "c": 1000},
        {"x": "-inf until the end"},
    ),
    "a temperature far from zero": (
        "m[r] = max[c](x[r,c]); q[r] = sum[c](exp((x[r,c] - m[r]) * 3.5)); "
        "y[r,c] = exp((x[r,c] - m[r]) * 3.5) / q[r]",
        {"r": 6, "c": 300},
        {"x": "far from zero"},
    ),
    "a temperature of the largest": (
        "m[r] = max[c](x[r,c]); y[r] = sum[c](exp((x[r,c] - m[r]) * 3.5))",
        {"r": 6, "c": 300},
        {"x": "large"},
    ),
    "attention with a temperature of the largest": (
        "p[i,j] = sum[d](q[i,d] * k[j,d]) + b[j]\nm[i] = max[j](p[i,j])\n"
        "y[i,e] = sum[j](exp((p[i,j] - m[i]) * 3.5) * v[j,e])",
        {"i": 6, "j": 300, "d": 8, "e": 20},
        {"b": "large"},
    ),
    "a base of two, distributed": (
        "m[r] = max[c](x[r,c]); y[r] = sum[c](exp2(x[r,c] * 1.5 - m[r] * 1.5))",
        {"r": 3, "c": 1000},
        {"x": "-inf until the end"},
    ),
    "a minimum of infinities at first": (
        "m[r] = min[c](x[r,c]); y[r] = sum[c](exp((m[r] - x[r,c]) * 2.5))",
        {"r": 3, "c": 1000},
        {"x": "inf until the end"},
    ),
    "rows of -inf": ("y[r] = logsumexp[c](x[r,c])", {"r": 6, "c": 700}, {"x": "rows of -inf"}),
    "rows of inf": ("y[r] = logsumexp[c](x[r,c])", {"r": 6, "c": 700}, {"x": "rows of inf"}),
    "rows of the least number": (
        "y[r,c] = softmax[c](x[r,c])",
        {"r": 6, "c": 700},
        {"x": "rows of least"},
    ),
    "values that some rows do not see": (
        "where j <= i; y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e])",
        {"i": 40, "j": 40, "d": 8, "e": 20},
        {"v": "one NaN"},
    ),
    "values of other documents": (
        "o: int32[i](index < 3); g: int32[j](index < 3); where o[i] == g[j]; "
        "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e])",
        {"i": 40, "j": 300, "d": 8, "e": 20},
        {"v": "one infinity", "k": "one NaN"},
    ),
    "scores with a large factor": (
        "y[i,e] = sum[j](sigmoid(sum[d](q[i,d] * k[j,d]) * 3e6) * v[j,e])",
        {"i": 20, "j": 30, "d": 8, "e": 20},
        {"k": "large"},
    ),
    "rows of scores of -inf": (
        "p[i,j] = sum[d](q[i,d] * k[j,d]) * 0.3 + a[i,j]\n"
        "y[i,e] = sum[j](softmax[j](p[i,j]) * v[j,e])\nl[i] = logsumexp[j](p[i,j])\n-> y, l",
        {"i": 20, "j": 300, "d": 8, "e": 20},
        {"a": "rows of -inf"},
    ),
    "filters that meet a border": (
        "x: float32[b,15,g]; y[b,p,g] = sum[k](inside(x[b,p + k - 1,g], 0) * z[k,g])",
        {"b": 2, "p": 15, "g": 40, "k": 3},
        {"z": "rows of inf"},
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_went_wrong_once_is_right(name):
    assert complaints((*KNOWN[name], 1), 10) == []


@settings(max_examples=40)
@given(cases())
def test_kernels_are_right_at_the_edges(case):
    assert complaints(case, 2) == []


@settings(max_examples=25)
@given(cases())
def test_kernels_stay_within_their_arrays(case):
    assert complaints(case, 2, BETWEEN_WALLS) == []


LEAVES = {
    "reads the float before": "{ volatile float x = ((float *)buffers[0])[-1]; }",
    "reads the byte behind": "{ volatile char x = ((char *)buffers[0])[4 * 48]; }",
    "writes the byte behind": "((char *)buffers[2])[4 * 48] = 1;",
    "has no meaning": "{ int many[4]; for (volatile int i = 0; i < 5; i++) many[i] = i; }",
    "is too large": "{ volatile int x = 0x7fffffff; x = x + 1; }",
}


@pytest.mark.parametrize("name", LEAVES)
def test_kernels_that_leave_their_arrays_are_found(name, tmp_path):
    w = workload("y[i] = x[i] * v[i]", i=48)
    space = space_for(w, TARGET)
    right = space.lower(space.schedule(space.sample(np.random.default_rng(0), 1)[0]))
    wrong = planted(right, r"  tw_call call = .*;", rf"\g<0>\n  {LEAVES[name]}", entry="wrong")
    (library, _) = compile_apart([right, wrong], TARGET, tmp_path, *TRAPS, "-Wno-error")
    inputs = edge_inputs(w.program, {})

    def ends(kernel: Kernel) -> list[str]:
        return [outcome(kernel, library, inputs, 1, p.memory, p.run)[0] for p in BETWEEN_WALLS]

    assert not any(ends(right))
    assert any("ended by" in found for found in ends(wrong))


@pytest.mark.slow
@settings(max_examples=2000)
@given(cases())
def test_many_kernels_stay_within_their_arrays(case):
    assert complaints(case, 4, TRAPPED) == []


@pytest.mark.slow
@settings(max_examples=2000)
@given(cases())
def test_many_kernels_are_right_at_the_edges(case):
    assert complaints(case, 4) == []
