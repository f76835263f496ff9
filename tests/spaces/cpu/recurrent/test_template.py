"""The CPU template of recurrences: its space, its rules, and what its kernels compute."""

from __future__ import annotations

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
from tests.spaces.recurrent_programs import TEXTS, extents_of
from tilewright.spaces.cpu.recurrent.template import RecurrentTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import serving
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload


def machine(**changes: Any) -> CpuTarget:
    return dataclasses.replace(this_cpu(), **{"threads": 3, "cores": 3, **changes})


def recurrence(name: str, kinds: str = "", **changes: int) -> Workload:
    return workload(kinds + TEXTS[name], **extents_of(name, **changes))


def space_of(w: Workload, target: CpuTarget) -> Space:
    return Space(w, target, [RecurrentTemplate(w, target)])


@pytest.mark.parametrize("name", TEXTS)
def test_kernels_agree_with_the_reference(name, tmp_path):
    check_sampled(space_of(recurrence(name), machine()), 5, 0, tmp_path)


@pytest.mark.parametrize("positions", [2, 3, 7, 8, 9])
@pytest.mark.parametrize("name", ["behind", "before, with maps"])
def test_few_positions(name, positions, tmp_path):
    w = recurrence(name, t=positions, s=positions, e=64)
    check_sampled(space_of(w, machine()), 8, 0, tmp_path)


@pytest.mark.parametrize("kind", ["bfloat16", "float64"])
def test_other_dtypes(kind, tmp_path):
    kinds = "".join(f"{name}: {kind}\n" for name in "qklvwy")
    w = recurrence("before, with maps", kinds)
    check_sampled(space_of(w, machine()), 4, 0, tmp_path)


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_other_vectors(vector_bytes, tmp_path):
    target = machine(vector_bytes=vector_bytes, isa="generic", bf16_dot=False)
    check_sampled(space_of(recurrence("state space"), target), 4, 0, tmp_path)


SCALED = [
    "state space",
    "decays that are summed up",
    "gated",
    "gated twice",
    "two decays",
    "gates of input",
]


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("scale", [0.0, 1e-3, 30.0, 300.0])
def test_decays_of_any_size(name, scale, tmp_path):
    """Powers that grow, vanish, and come back after they were too small for the state."""
    w, target = recurrence(name), machine()
    kernels = sampled(space_of(w, target), 4)
    library = compile_kernels(kernels, target, tmp_path)
    inputs = w.make_inputs(0)
    own = "a" if "a" in inputs else "l"
    inputs[own] = (inputs[own] * scale).astype(np.float32)
    for kernel in kernels:
        assert complaint(kernel, library, w, 0, inputs) == ""


def test_what_grows_far_beyond_its_growth_costs_no_accuracy(tmp_path):
    w, target = recurrence("two decays", h=1, t=700, s=700, d=1, e=16), machine()
    kernels = sampled(space_of(w, target), 2)
    library = compile_kernels(kernels, target, tmp_path)
    assert [complaint(kernel, library, w, 0) for kernel in kernels] == [""] * len(kernels)


def test_a_power_that_comes_back_is_that_of_the_terms(tmp_path):
    w, target = (
        workload(TEXTS["averages"].replace("g[e] * (s - t)", "l[s] * -1 + l[t]"), t=3, s=3, e=16),
        machine(),
    )
    (kernel, *_) = sampled(space_of(w, target), 1)
    library = compile_kernels([kernel], target, tmp_path)
    inputs = {"l": np.array([0, -200, 0], np.float32), "x": np.ones((3, 16), np.float32)}
    _, found = outcome(kernel, library, inputs)
    np.testing.assert_allclose(found["y"][[0, 1]], 1.0)
    assert (found["y"][2] == np.inf).all()


# what is broken: the program, a pattern, and its replacement
BUGS = {
    "nothing is kept": ("state space", r"z0 \* p0_m_kept", "z0 * tw_set(0)"),
    "nothing decays": ("state space", r"z0 \* p1_m_kept", "z0"),
    "a scale is not stored": ("state space", r"m\[0\] = p1_m1;", ""),
    "no scale of what is added": ("retention", r"(\w+ \* )p0_m_added", r"\1tw_set(1)"),
    "no scale of what is read": ("state space", r"y0_0 \* p0_m_read", "y0_0"),
    "the least exponent": ("state space", r"tw_max\(p0_m0", "tw_min(p0_m0"),
    "an old state": ("linear attention", r"s\[i\] = tw_set\(0\);", ""),
    "the state is not stored": ("linear attention", r"s\[.*\] = z0;", ""),
    "read too soon": ("before, with maps", r"(y1_0 = .*;)\n(\s*)(z0 = .*;)", r"\3\n\2\1"),
    "the first has terms": ("before, with maps", r"t > 0 \? TW_LANES", "1 ? TW_LANES"),
    "another position": ("linear attention", r"(37 \* t \+ .*) \+ 37\)", r"\1)"),
    "powers of other points": ("gated", r"tw_splat_float32\(h \+ d0\)", "tw_splat_float32(h)"),
    "powers of the position before": ("gated", r"h \+ \(d0 \+ 80\)", "h + (d0 + 32)"),
    "some points have none": ("gated", r"c < 7; c \+= 16", "c < 0; c += 16"),
    "the last positions": ("linear attention", r"t = 44; t < 45", "t = 45; t < 45"),
    "forwards": ("suffixes", r"-7 \* t \+ d0 \+ 308", "7 * t + d0"),
    "the same lanes twice": ("linear attention", r"\b16 \* a\w+|item % \d+", "0"),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_every_planted_bug_is_found(bug, tmp_path):
    name, pattern, replacement = BUGS[bug]
    target = machine(vector_bytes=64, isa="generic", bf16_dot=False)
    w = recurrence(name)
    space = space_of(w, target)
    wanted = {"vectors": 1, "positions": 2, "workers": 3}
    (schedule,) = (s for s in space.enumerate() if s.values == wanted)
    inputs = [None]
    if bug == "the first has terms":
        hidden = w.make_inputs(0)
        hidden["q"][:, 0] = np.nan
        inputs = [hidden]
    bugs = {bug: (pattern, replacement)}
    check_bugs_are_found(space.lower(schedule), bugs, w, target, tmp_path, inputs, count=0)


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a product of matrices"),
        (workload("softmax", r=4, c=8), "made of one sum"),
        (workload("attention b=1 h=2 i=8 j=8 d=4 mask=causal"), "terms do not separate"),
        (
            workload("y[t,e] = sum[s: s <= t](exp(x[t] * z[s]) * v[s,e])", t=5, s=5, e=4),
            "multiplies a result by an element",
        ),
        (workload("y[t,e] = sum[s: s <= t](tanh(x[t] + z[s]) * v[s,e])", t=5, s=5, e=4), "mixes"),
        (workload("y[t,e] = sum[s: s <= t]((x[t] + z[s]) * v[s,e])", t=5, s=5, e=4), "2 terms"),
        (workload("y[t,e] = sum[s: s <= t](x[t] * v[s,e])", t=5, s=6, e=4), "5 prefixes of 6"),
        (workload("y[t,e] = sum[s: s <= t](v[s,e])", t=5, s=5, e=4), "it is a scan"),
        (workload("y[t] = sum[s: s <= t](x[t] * v[s])", t=5, s=5), "no axis beside t"),
        (workload("y[t,e] = sum[s](x[t] * v[s,e])", t=5, s=5, e=4), "no sum over prefixes"),
        (
            workload(
                "i: int32[t](index < 9); y[t,e] = sum[s: s <= t](x[i[t]] * v[s,e])", t=5, s=5, e=4
            ),
            "entries of a table",
        ),
        (workload("x: float16; y[t,e] = sum[s: s <= t](x[t] * v[s,e])", t=5, s=5, e=4), "float16"),
        (
            workload("y[t,e] = sum[s: s <= t](x[t] * v[s,e])", t=1 << 17, s=1 << 17, e=4),
            "131072 positions",
        ),
    ],
)
def test_refusals_say_why(w, words):
    assert words in str(RecurrentTemplate.why_not(w, this_cpu()))


def test_state_spaces_are_served():
    for name in ("state space", "selective", "decays that are summed up"):
        found = serving(recurrence(name), machine())
        assert not isinstance(found, str)
        assert "recurrent" in [template.name for template in found.templates]


def test_quantities_are_possible_and_linear_in_positions():
    few, many = (
        checked_quantities(space_of(recurrence("state space", t=n, s=n), machine()), 1, 32)
        for n in (300, 3000)
    )
    assert many["flops"].max() == 10 * few["flops"].max()
    assert many["instructions"].min() > few["instructions"].max()


def test_every_rule_refuses_something_and_says_why():
    works = (
        recurrence("linear attention", t=3, s=3, e=90, d=3000),
        recurrence("state space", h=40, t=3000, s=3000),
    )
    target = machine(threads=8, cores=8, l2_bytes=64 << 10, vector_registers=16)
    assert not silent_rules([space_of(w, target) for w in works], 200)
