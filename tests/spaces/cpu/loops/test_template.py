"""The CPU template of plain loops: its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, check_sampled
from tests.spaces.loops.programs import SERVED, text_of
from tilewright.spaces.cpu.loops.template import CpuLoops
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import Served, serving, space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract, silent_rules


def machine(threads: int = 1) -> CpuTarget:
    return dataclasses.replace(this_cpu(), threads=threads, cores=threads)


def space_of(text: str, threads: int = 1) -> Space:
    w, target = workload(text), machine(threads)
    return Space(w, target, [CpuLoops(w, target)])


class TestLoops(TemplateContract):
    template = CpuLoops

    def served(self):
        texts = [*map(text_of, SERVED), "matmul m=5 n=6 k=7 dtype=int8", "matmul m=2 n=3 k=4"]
        return [(workload(text), machine(threads)) for text in texts for threads in (1, 3)]

    def refused(self):
        return [(workload("softmax r=4 c=4"), detect_target("cuda:sm_80"))]


@pytest.mark.parametrize("name", SERVED)
def test_kernels_compute_the_program(name, tmp_path):
    check_sampled(space_of(text_of(name), threads=3), 6, 1, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "matmul m=5 n=6 k=7 dtype=int8",
        'matmul m=5 n=6 k=7 batch=3 b=col dtype=float16 epilogue="gelu(x + b[n]) * r[m,n]"',
    ],
)
def test_products_of_matrices_are_programs_too(text, tmp_path):
    check_sampled(space_of(text, threads=2), 4, 2, tmp_path)


def test_it_serves_only_what_nothing_else_does():
    assert list(space_for(workload("softmax r=8 c=8"), machine()).templates) == ["rows"]
    greatest = workload("where k <= 2 * j; y[i,j] = max[k](x[i,k])", i=4, j=9, k=9)
    assert serving(greatest, machine()) == Served(greatest, [CpuLoops])


def test_sums_that_conditions_bound_are_served_in_another_form():
    w = workload("'where k <= 2 * j; y[i,j] = sum[k](x[i,k])' i=4 j=9 k=9")
    found = serving(w, machine())
    assert isinstance(found, Served)
    assert found.workload.inputs == w.inputs
    assert found.workload != w
    assert CpuLoops not in found.templates


def test_every_rule_refuses_something():
    small = [space_of(text_of(name), threads=4) for name in ("a softmax", "a cumulative sum")]
    assert silent_rules(small, 300) <= {"threads"}


BUGS = {
    "a worker's chunk is left out": (r"first = \(i64\)worker", "first = (i64)(worker + 1)"),
    "the last element is left out": (r"n < end", "n + 1 < end"),
    "a hidden term counts": (r"if \(!\(.*?\)\) continue;", ""),
    "a term is left out": (r"r = begin; r <", "r = begin + 1; r <"),
    "the axes change places": (r"i64 i(\d) = n / ", r"i64 i\1 = n % "),
    "another start": (r"sum = 0.0", "sum = 1.0"),
    "a block counts twice": (r"block = 0.0;", "block = sum;"),
}


def test_every_planted_bug_is_found(tmp_path):
    text = "where k <= j; y[i,j] = sum[k](x[i,k])"
    space = space_of(f'"{text}" i=40 j=40 k=40')
    right = space.lower(space.schedule(space.sample(np.random.default_rng(0), 1)[0]))
    check_bugs_are_found(right, BUGS, space.workload, machine(), tmp_path)


def test_indices_within_indices_take_no_more_text_than_they_have():
    """Each is written once, however deep."""
    sizes = []
    for depth in (4, 8):
        text = "inside(t[" * depth + "i" + " + 1], 0)" * depth
        space = space_of(f'"t: int32[9](index < 8); y[i] = {text}" i=8')
        kernel = space.lower(space.schedule(space.sample(np.random.default_rng(0), 1)[0]))
        sizes.append(len(kernel.source.body.partition("#endif")[2]))
    assert sizes[1] < 2 * sizes[0]
