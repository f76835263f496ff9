"""The template for rows: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import compile_kernels, complaint
from tests.spaces.cpu.rows.checked_rows import TARGET, complaints, lowered, own, space_of
from tests.spaces.derivation.programs import random_chain
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.rows.template import RowsTemplate
from tilewright.spaces.cpu.target import FLAGS
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

NAMED = [
    ("softmax", {"r": 3, "c": 67}),
    ("softmax", {"r": 2, "c": 131, "dtype": "bfloat16"}),
    ("softmax", {"r": 3, "c": 67, "dtype": "float64"}),
    ("log_softmax", {"r": 5, "c": 64}),
    ("cross_entropy", {"r": 7, "c": 33}),
    ("layernorm", {"r": 3, "c": 61, "outputs": "y,mean,rstd"}),
    ("rmsnorm", {"r": 1, "c": 3, "dtype": "bfloat16"}),
    ("mean", {"shape": "3x4x19", "over": "0,2"}),
    ("sum", {"shape": "2x7x67", "over": "1"}),
    ("argmax", {"shape": "3x4x19", "over": "0,2"}),
    ("argmax", {"shape": "7x131", "over": "0"}),
    ("avg_pool2d", {"n": 1, "c": 3, "h": 12, "w": 35, "r": 2}),
]
MORE = [
    ("softmax", {"r": 131, "c": 67}),
    ("softmax", {"r": 2, "c": 5}),
    ("logsumexp", {"r": 1, "c": 127}),
    ("layernorm", {"r": 1, "c": 1}),
    ("layernorm", {"r": 3, "c": 33, "dtype": "float64"}),
    ("rmsnorm", {"r": 4, "c": 96}),
    ("sum", {"shape": "3x4x19", "over": "2"}),
    ("max", {"shape": "5x7x3", "over": "0"}),
    ("min", {"shape": "2x3x4", "over": "0,1,2"}),
    ("argmax", {"shape": "5x41", "over": "0", "dtype": "float64"}),
    ("argmax", {"shape": "5x41", "over": "1"}),
]
TEXTS = [
    "y[r] = prod[c](1 + x[r, c] / 8)\n-> y",
    "y[r] = argmin[c](x[r, c] - mean[c](x[r, c]))\n-> y",
    "m[r] = min[c](x[r, c])\ny[r, c] = (x[r, c] - m[r]) * c + r\n-> y, m",
    "y[r] = sum[c](exp2(x[r, c] - max[c](x[r, c])) * select(c < 5, w[c], floor(x[r, c])))",
    "e[r, c] = exp(x[r, c] - max[c](x[r, c]))\ny[r, c] = e[r, c] / sum[c](e[r, c])\n-> y, e",
    "y[r, c] = softmax[c](x[r, c])\ni[r] = argmax[c](x[r, c])\n-> y, i",
    "y: float32(order=(1, 0))\ny[r, c] = softmax[c](x[r, c])",
    "y[r] = sum[c](select((c + 2 * r) % 3 == 0, x[r, c], 0) * ((c - 50) // 7))",
    "y[r] = max[c](x[r, c] * (c * r + 1))",
    "y[c, r] = softmax[c](x[c, r] * w[r] + c + r)",
    "y[r, c] = softmax[c](select(c % 3 > 0, x[r, c], -1e30)) * sum[c](c * c)",
    "l[r] = logsumexp[c](x[r, c])\ni[r] = argmax[c](x[r, c])\n-> l, i",
    "t: int32[r](index < 7)\nx: float32[c, 7]\ny[r] = max[c](x[c, t[r]] + z[c, r])",
    "m[c] = mean[r](x[r, c])\nv[c] = var[r](x[r, c])\n-> m, v",
]


@pytest.mark.parametrize(("name", "parameters"), NAMED)
def test_named_operators_agree_with_their_programs(name, parameters, tmp_path):
    w = workload(name, **parameters)
    assert complaints(w, lowered(w, TARGET, 4), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), [*NAMED, *MORE])
def test_many_schedules_of_named_operators_agree(name, parameters, tmp_path):
    w = workload(name, **parameters)
    assert complaints(w, lowered(w, TARGET, 24), tmp_path) == []


@pytest.mark.parametrize("text", TEXTS)
def test_programs_of_ones_own_agree(text, tmp_path):
    w = own(text, r=3, c=77)
    assert complaints(w, lowered(w, TARGET, 4), tmp_path) == []


def agrees_at_random(seed: int, folder: Path) -> bool:
    """Whether a random chain is served and agrees; rows of extents of all kinds."""
    extent = random.Random(seed).choice([1, 7, 11, 31, 64, 101])
    try:
        made = random_chain(seed, "float32", extent)
    except InputError:
        return False
    w = Workload("program", (), made, "")
    if RowsTemplate.why_not(w, TARGET):
        return False
    assert complaints(w, lowered(w, TARGET, 3, seed), folder / str(seed)) == []
    return True


def test_random_chains_agree(tmp_path):
    assert sum(agrees_at_random(seed, tmp_path) for seed in range(8)) > 1


@pytest.mark.slow
def test_many_random_chains_agree(tmp_path):
    assert sum(agrees_at_random(seed, tmp_path) for seed in range(100, 300)) > 100


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_other_widths_of_vectors(vector_bytes, tmp_path):
    """Narrower ones as other instruction sets have them, wider ones as compilers make of two."""
    target = dataclasses.replace(TARGET, isa="generic", vector_bytes=vector_bytes, bf16_dot=False)
    for name, parameters in (NAMED[0], NAMED[5]):
        w = workload(name, **parameters)
        assert complaints(w, lowered(w, target, 4), tmp_path / name) == []


@pytest.mark.skipif(this_cpu().architecture != "x86_64", reason="needs a compiler for AVX-512")
def test_avx512_takes_whole_vectors_for_exponentials_and_maxima(tmp_path):
    """Compiled, not run: no instruction of half the width stands for a maximum."""
    target = dataclasses.replace(TARGET, isa="avx512", vector_bytes=64, vector_registers=32)
    kernels = list(lowered(workload("softmax", r=64, c=128), target, 4).values())
    source, assembly = tmp_path / "kernels.c", tmp_path / "kernels.s"
    bodies = [kernel.source.body for kernel in kernels]
    source.write_text("\n".join([kernels[0].source.prelude, *bodies]))
    flags = [*FLAGS, "-mavx512bw", "-mavx512vl", "-mfma", "-mprefer-vector-width=256", "-w", "-S"]
    command = [find_compiler().path, *flags, str(source), "-o", str(assembly)]
    subprocess.run(command, check=True, timeout=120)
    maxima = re.findall(r"v(?:max|min)ps.*%([xyz])mm\d+$", assembly.read_text(), re.MULTILINE)
    assert maxima.count("z") > 8
    assert "y" not in maxima


def test_infinite_elements_do_not_spoil_a_row(tmp_path):
    """What is left out of a softmax by minus infinity: whole lanes of a row, too."""
    w = workload("softmax", r=2, c=64)
    x = np.random.default_rng(0).uniform(-1, 1, (2, 64)).astype(np.float32)
    x[0, ::2] = x[1, 5:] = -np.inf
    kernels = lowered(w, TARGET, 12)
    library = compile_kernels(list(kernels.values()), TARGET, tmp_path)
    assert {s.values["passes"] for s in kernels} == {"online", "plain"}
    assert [complaint(k, library, w, 0, {"x": x}) for k in kernels.values()] == [""] * len(kernels)


def test_of_equal_elements_the_first_is_the_place(tmp_path):
    w = workload("argmax", shape="4x45", over="1")
    x = np.zeros((4, 45), np.float32)
    x[1, [17, 18, 33, 44]] = 1
    x[2] = -np.inf
    x[3, [9, 40]] = np.nan
    kernels = lowered(w, TARGET, 12)
    library = compile_kernels(list(kernels.values()), TARGET, tmp_path)
    assert [complaint(k, library, w, 0, {"x": x}) for k in kernels.values()] == [""] * len(kernels)


def test_an_index_beyond_its_table_reads_its_nearest_entry(tmp_path):
    w = workload("cross_entropy", r=2, c=9)
    inputs = w.make_inputs(0) | {"label": np.array([2**31 - 1, -(2**31)], np.int32)}
    (kernel, *_) = lowered(w, TARGET, 1).values()
    library = compile_kernels([kernel], TARGET, tmp_path)
    assert complaint(kernel, library, w, 0, inputs) == ""


@pytest.mark.parametrize(
    ("operator", "held", "computed"),
    [
        ("softmax", "scratch", "tw_store_float32(held"),
        ("softmax", "again", "tw_s.*_float32(p1"),
        ("layernorm", "again", "tw_s.*_float32(p"),
    ],
)
def test_the_next_row_is_fetched_in_the_walk_that_computes_most(operator, held, computed):
    space = space_of(workload(operator, r=4, c=1024))
    wanted = {"prefetch": True, "intermediates": held, "passes": "plain", "lanes": "columns"}
    schedule = next(s for s in space.enumerate() if s.values.items() >= wanted.items())
    loops = [
        loop for loop in space.lower(schedule).source.body.split("for (long j0") if "j0" in loop
    ]
    fetching = [loop for loop in loops if "__builtin_prefetch(p0" in loop]
    assert len(fetching) == 1
    assert re.search(computed.replace("(", r"\("), fetching[0])


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "product of matrices"),
        (workload("conv1d", n=1, c=2, w=8, o=3, r=3), "with columns p"),
        (workload("swiglu", r=4, c=8), "nothing is reduced"),
        (workload("softmax", r=4, c=8, dtype="float16"), "is float16"),
        (own("x: float64[2, 5]\ny[r] = sum[c](bfloat16(x[r, c]))", r=2, c=5), "float64 kernels"),
        (workload("argmax", shape="3x4x5", over="2,1"), "another order"),
        (own("y[r] = x[r] * sum[c](c)", r=2, c=8192), "go beyond 16777216"),
        (own("y[r] = x[r] * prod[c](2 + c % 2)", r=2, c=40), "go beyond 16777216"),
        (own("where c <= r\ny[r] = sum[c](x[r, c])", r=2, c=5), "bounded by"),
        (own("n: int32[5]\ny[r] = sum[c](x[r, c] * n[c])", r=2, c=5), "n is int32"),
    ],
)
def test_refusals_say_what_is_needed(w, words):
    assert words in RowsTemplate.why_not(w, this_cpu())


def test_equal_programs_have_the_same_space_and_kernels():
    one = own("y[a, b] = softmax[b](x[a, b] + w[b])", a=70, b=80)
    two = own("out[k, l] = softmax[l](v[l] + t[k, l])", k=70, l=80)
    assert one == two
    spaces = [space_of(w) for w in (one, two)]
    assert list(spaces[0].enumerate()) == list(spaces[1].enumerate())
    first = next(iter(spaces[0].enumerate()))
    texts = [space.lower(first).source.body for space in spaces]
    assert len(texts[0]) == len(texts[1])


def test_every_rule_refuses_something_and_says_why():
    target = dataclasses.replace(this_cpu(), threads=4, cores=4)
    works = [workload("softmax", r=r, c=c) for r, c in ((2, 40), (4096, 1024), (8, 2**20))]
    assert not silent_rules([space_of(w, target) for w in works], 300)


@pytest.mark.parametrize(("name", "parameters"), [*NAMED, *MORE])
def test_quantities_are_complete_and_possible(name, parameters):
    quantities = checked_quantities(space_of(workload(name, **parameters)), seed=0, schedules=60)
    assert (quantities["flops"] >= quantities["useful_flops"]).all()


def test_rows_beyond_a_cache_are_read_again_by_each_walk():
    def near(c: int, **changes: object) -> float:
        space = space_of(workload("softmax", r=64, c=c))
        values = next(iter(space.enumerate())).values | changes
        columns = {name: np.array([value]) for name, value in values.items()}
        (template,) = space.templates.values()
        return float(template.quantities(columns)["near_bytes"][0]) / (4 * 64 * c)

    assert near(1024, passes="plain") == near(1024, passes="online") == 2
    assert near(65536, passes="plain") == 4
    assert near(65536, passes="online") == 3


def test_a_space_for_rows_has_this_template_alone():
    assert list(space_for(workload("softmax", r=64, c=64), this_cpu()).templates) == ["rows"]
