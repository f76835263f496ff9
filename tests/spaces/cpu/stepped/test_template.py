"""The CPU template of steps: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import re
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
from tests.spaces.cycle_programs import SQUARE, TEXTS, expected, extents_of
from tests.spaces.random_cycles import EXTENTS, random_cycles
from tilewright.spaces.cpu.stepped.served import cached_view
from tilewright.spaces.cpu.stepped.template import SteppedTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import serving
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

SERVED = [name for name in TEXTS if name != "heat"]


def machine(**changes: Any) -> CpuTarget:
    return dataclasses.replace(this_cpu(), **{"threads": 3, "cores": 3, **changes})


def stepped(name: str, kinds: str = "", **changes: int) -> Workload:
    return workload(kinds + TEXTS[name], **extents_of(name, **changes))


def space_of(w: Workload, target: CpuTarget) -> Space:
    return Space(w, target, [SteppedTemplate(w, target)])


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("d", [5, 37, 64])
def test_kernels_agree_with_the_reference(name, d, tmp_path):
    check_sampled(space_of(stepped(name, d=d, t=21), machine()), 4, 0, tmp_path)


@pytest.mark.parametrize("name", SERVED)
def test_kernels_agree_with_a_loop(name, tmp_path):
    w, target = stepped(name, b=3, d=20, t=6), machine()
    kernels = sampled(space_of(w, target), 2)
    library = compile_kernels(kernels, target, tmp_path)
    inputs = w.make_inputs(1)
    for kernel in kernels:
        _, found = outcome(kernel, library, inputs)
        last = w.outputs[-1].name
        np.testing.assert_allclose(found[last], expected(name, inputs), 1e-4, 1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_kernels_of_random_cycles_agree_with_loops(seed, tmp_path):
    made, target = random_cycles(seed), machine()
    used = {a: n for a, n in EXTENTS.items() if re.search(rf"\b{a}\b", made.text)}
    w = workload(made.text, **used)
    if SteppedTemplate.why_not(w, target) is not None:
        pytest.skip("it has no cycle")
    kernels = sampled(space_of(w, target), 1)
    library = compile_kernels(kernels, target, tmp_path)
    inputs = w.make_inputs(seed)
    wanted = made.computed({name: np.asarray(array) for name, array in inputs.items()})
    _, found = outcome(kernels[0], library, inputs)
    for name, array in found.items():
        np.testing.assert_allclose(array, wanted[name], 1e-3, 1e-4)


def test_cycles_that_read_each_other_go_through_a_step_together(tmp_path):
    """Layers of a network, of which each reads what the one below has made."""
    below = "g[b, t, d] = 0.5 * inside(g[b, t - 1, d], 0) + x[b, t, d]; "
    above = "h[b, t, d] = tanh(inside(h[b, t - 1, d], 1) + g[b, t, d] - inside(g[b, t - 1, d], 2))"
    w = workload(below.replace("0)", "2)") + above, b=2, t=9, d=37)
    check_sampled(space_of(w, machine()), 3, 0, tmp_path)


@pytest.mark.parametrize("kind", ["bfloat16", "float64"])
def test_other_dtypes(kind, tmp_path):
    kinds = "".join(f"{name}: {kind}\n" for name in "vkqgo")
    check_sampled(space_of(stepped("delta", kinds, d=37), machine()), 3, 0, tmp_path)


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_other_vectors(vector_bytes, tmp_path):
    target = machine(vector_bytes=vector_bytes, isa="generic", bf16_dot=False)
    check_sampled(space_of(stepped("gated delta", d=37), target), 3, 0, tmp_path)


@pytest.mark.parametrize("steps", [1, 2, 300])
def test_few_and_many_steps(steps, tmp_path):
    check_sampled(space_of(stepped("gates", t=steps, d=64), machine()), 3, 0, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "h[t] = 0.5 * inside(h[t - 1], 2) + x[t]",
        "h[t, d] = tanh(x[t, d] + sum[e](inside(h[t - 1, e], 0) * m[e, d]))",
        "m[t] = max[d](inside(s[t - 1, d], 1)); s[t, d] = x[t, d] - 0.1 * m[t]; -> m, s",
    ],
)
def test_programs_without_an_independent_axis(text, tmp_path):
    extents = {a: n for a, n in {"t": 23, "d": 5, "e": 5}.items() if re.search(rf"\b{a}\b", text)}
    check_sampled(space_of(workload(text, **extents), machine()), 2, 0, tmp_path)


GRADIENTS = {
    "tanh": ("x", "h"),
    "matrix": ("x", "h"),
    "gates": ("x,y", "c,h"),
    "selective": ("x,k,q", "h"),
    "delta": ("k,g,v,q", "S"),
    "gated delta": ("a,k,g,v,q", "S"),
    "gated delta backwards": ("k,v", "S,S_sum"),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_go_through_the_steps_the_other_way(name, tmp_path):
    wrt, saved = GRADIENTS[name]
    derived = gradient(stepped(name, b=3, t=7, d=20), wrt, saved)
    check_sampled(space_of(workload_of(derived), machine()), 3, 0, tmp_path)


BESIDE = {
    "before and after": "y[b, t, d] = inside(y[b, t - 1, d], 0) * 0.5 + inside(x[b, t - 2, d], 3) "
    "+ inside(x[b, t + 1, d], -inf)",
    "another row": "y[b, t, d] = tanh(inside(y[b, t - 1, d], 0) + inside(x[b + 1, t, d], 1))",
    "along lanes": "y[b, t, d] = tanh(inside(y[b, t - 1, d], 0) + inside(x[b, t, d - 1], 1))",
    "along an inner axis": "y[b, t, d] = tanh(inside(y[b, t - 1, d], 0) + sum[e](inside(x[b, t - 1"
    ", e - 1], 0.5)))",
}


CHOSEN = {
    "words": "i: int32[3, 6](index < 7); x: float32[7, 20]; "
    "y[b, t, d] = tanh(inside(y[b, t - 1, d], 0) + x[i[b, t], d])",
    "rows": "i: int32[3](index < 5); x: float32[5, 6, 20]; "
    "y[b, t, d] = 0.5 * inside(y[b, t - 1, d], 0) + x[i[b], t, d]",
    "elements": "i: int64[20](index < 20); x: float32[3, 6, 20]; "
    "y[b, t, d] = inside(y[b, t - 1, d], 0) * w[d] + sum[e](x[b, t, i[e]] * m[e, d])",
    "bounded": "y[b, t, d] = tanh(x[b, t, d] + sum[e: e < d](inside(y[b, t - 1, e], 0) * m[e, d]))",
    "bounded by steps": "x: float32[3, 6, 20]; y[b, t, d] = 0.1 * inside(y[b, t - 1, d], 0) + "
    "sum[e: e <= t](x[b, t - e, d] * w[e])",
}


@pytest.mark.parametrize("name", CHOSEN)
def test_tables_choose_operands_and_conditions_bound_sums(name, tmp_path):
    extents = {"b": 3, "t": 6, "d": 20, "e": 20}
    used = {a: n for a, n in extents.items() if re.search(rf"\b{a}\b", CHOSEN[name])}
    check_sampled(space_of(workload(CHOSEN[name], **used), machine()), 3, 0, tmp_path)


@pytest.mark.parametrize("name", BESIDE)
def test_operands_are_read_beyond_their_borders(name, tmp_path):
    text = f"x: float32[3, 6, 20]; {BESIDE[name]}"
    extents = {"b": 3, "t": 6, "d": 20, "e": 20}
    w = workload(text, **{a: n for a, n in extents.items() if re.search(rf"\b{a}\b", BESIDE[name])})
    check_sampled(space_of(w, machine()), 3, 0, tmp_path)


def test_arrays_of_another_order_are_read_and_written_apart(tmp_path):
    kinds = "v: float32[2, 9, 37](order=(2, 0, 1))\no: float32[2, 9, 37](order=(2, 1, 0))\n"
    check_sampled(space_of(stepped("delta", kinds, d=37), machine()), 3, 0, tmp_path)


def test_operands_whose_lanes_are_apart_are_copied_before_the_first_step(tmp_path):
    text = TEXTS["selective"].replace("r[e]", "r[d, e]")
    w = workload(text, b=2, t=9, d=37, e=3)
    space = space_of(w, machine())
    check_sampled(space, 4, 0, tmp_path)
    (schedule, *_) = space.enumerate()
    before, steps = space.lower(schedule).source.body.split("for (long t = 0")
    assert "tw_gather_float32" in before
    assert "tw_gather_float32" not in steps


@pytest.mark.parametrize("name", ["gates", "delta", "largest"])
def test_infinities_and_missing_numbers(name, tmp_path):
    w, target = stepped(name, d=20), machine()
    kernels = sampled(space_of(w, target), 2)
    library = compile_kernels(kernels, target, tmp_path)
    inputs = {n: array.copy() for n, array in w.make_inputs(0).items()}
    first = inputs.get("x", inputs.get("v"))
    first[0, 3, 2] = np.inf
    first[1, 4, 1] = np.nan
    for kernel in kernels:
        assert complaint(kernel, library, w, 0, inputs) == ""


ACROSS = {
    "a sum": "h[t, d] = tanh(x[t, d] + 0.1 * sum[d](inside(h[t - 1, d], 0)))",
    "sums along both": "S[b, t, d, e] = 0.5 * inside(S[b, t - 1, d, e], 0) + k[b, t, e] * "
    "v[b, t, d]; p[b, t, d] = sum[e](S[b, t, d, e]); "
    "q[b, t, e] = sum[d](S[b, t, d, e] * v[b, t, d]); "
    "r[b, t] = sum[d, e](S[b, t, d, e] * x[b, t, d, e]); -> p, q, r",
    "the least and the greatest": "m[t] = max[d](inside(s[t - 1, d], -inf)); "
    "n[t] = min[d](x[t, d]); s[t, d] = max(x[t, d], 0.5 * m[t]) - n[t]; -> m, s",
}


@pytest.mark.parametrize("name", ACROSS)
@pytest.mark.parametrize("d", [5, 16, 37])
def test_lanes_that_are_reduced_go_through_a_step_together(name, d, tmp_path):
    used = {
        a: n
        for a, n in {"b": 3, "t": 7, "d": d, "e": 5}.items()
        if f"{a}]" in ACROSS[name] or f"[{a}," in ACROSS[name]
    }
    space = space_of(workload(ACROSS[name], **used), machine())
    view = cached_view(space.workload.program, machine().lanes(4))
    assert view.across
    groups = -(-view.extent(view.lane) // machine().lanes(4))
    assert {s["vectors"] for s in space.enumerate()} == {groups}
    check_sampled(space, 3, 0, tmp_path)


def test_too_many_lanes_are_reduced_one_by_one(tmp_path):
    space = space_of(workload(ACROSS["a sum"].replace("tanh", ""), t=4, d=200), machine())
    check_sampled(space, 2, 0, tmp_path)


# what is broken: the program, a pattern, and its replacement
BUGS = {
    "nothing is kept": ("delta", r"s\[d0\] = .*;", ""),
    "an old state": ("delta", r"s\[i \+ 0\] = tw_set\(0.0\);", ""),
    "another start": ("growing", r"tw_set\(1.0\)", "tw_set(0.0)"),
    "the last step": ("delta", r"t < 9", "t < 8"),
    "the first step": ("delta", r"long t = 0", "long t = 1"),
    "a sum goes on": ("delta", r"(for \(long t.*)\n\s*(vf r0_0 = .*;)", r"\2 \1"),
    "one point less": ("delta", r"long d0 = 0", "long d0 = 1"),
    "the step before": ("delta", r"4 \* t \+ d0", "4 * (t - (t > 0)) + d0"),
    "the same lanes twice": ("delta", r"16 \* \(item % 3\)", "0"),
    "one row twice": ("delta", r"item / 3", "0"),
    "the state of a later step": ("matrix", r"s\[\(?d0 \+ 5\)?\] = (.*);", r"s[d0] = \1;"),
    "the state that is made": ("gates", r"const vf v0_6 = o0_0;", "const vf v0_6 = o1_0;"),
    "a gate that is shut": ("gates", r"tw_sigmoid\((\w+)\)", r"tw_sigmoid(-\1)"),
    "the least": ("largest", r"tw_max\(r0_0", "tw_min(r0_0"),
    "steps up": ("gated delta backwards", r"t = 7 - step", "t = step"),
    "the first step of all, which is last": ("gates backwards", r"step < 8", "step < 7"),
    "the last step of all, which is first": ("matrix backwards", r"step = 0", "step = 1"),
    "lanes beyond the last": ("reduced", r"tw_first\(", "tw_first(1 + "),
    "a vector of lanes that is left out": ("reduced", r"tw_across_sum\(\w+ \+ ", "tw_across_sum("),
    "what the last step begins with": ("growing backwards", r"tw_set\(1.0\)", "tw_set(0.0)"),
}


def reduced() -> Workload:
    """A program whose lanes are reduced, of which the last vector has few."""
    return workload("h[t, d] = 0.1 * sum[d](inside(h[t - 1, d], 0)) + x[t, d]", t=8, d=37)


@pytest.mark.parametrize("bug", BUGS)
def test_every_planted_bug_is_found(bug, tmp_path):
    name, pattern, replacement = BUGS[bug]
    target = machine(vector_bytes=64, isa="generic", bf16_dot=False)
    steps = {"t": 8} if name.endswith("backwards") else {}
    w = stepped(name, d=5 if name in SQUARE else 37, **steps) if name in TEXTS else reduced()
    space = space_of(w, target)
    least = min(s["vectors"] for s in space.enumerate())
    (schedule, *_) = (s for s in space.enumerate() if (s["vectors"], s["unroll"]) == (least, 1))
    bugs = {bug: (pattern, replacement)}
    check_bugs_are_found(space.lower(schedule), bugs, w, target, tmp_path, [None], count=0)


REFUSED = {
    TEXTS["heat"]: "inside.h.b, t - 1, d - 1., 1. is read at 'd - 1'; allowed: an axis of h",
    "h[b, t] = inside(h[b, t - 1], 0) + x[b, t]; y[b] = sum[t](h[b, t])": "y has no axis t, along",
    "i: int32[2](index < 2); j: int32[2](index < 2); h[b, t] = inside(h[b, t - 1], 0) + "
    "x[i[j[b]], t]": "entries of a table choose i.j.b..",
    "i: int32[2](index < 2); x: float32[2, 2]; h[b, t] = inside(h[b, t - 1], 0) + "
    "inside(x[i[b] - 1, t], 0)": "may leave its array by entries of a table; allowed: by axes",
    "h[b, t] = inside(h[b, t - 1], 0) * inside(h[b, t - 1], 1) + x[b, t]": "h begins with 1, and",
    "g[b, t, d] = inside(g[b, t - 1, d], 0) + x[b, t, d]; "
    "h[b, t, d] = inside(h[b, t, d - 1], 0) + g[b, t, d]": "stages step along d and t; allowed",
    "g[b, t] = inside(g[b, t - 1], 0) + x[b, t]; h[b, t] = inside(h[b, t + 1], 0) + g[b, t]": ""
    "some steps along t go up, others down; allowed: one direction",
    "h[b, t] = inside(h[b, t + 1], 0) + x[b, t]; y[b, t] = inside(h[b, t - 1], 0)": "of neither",
    "h[b, t] = prod[d](inside(h[b, t - 1], 1) + x[b, t, d])": "h is a prod; allowed: sum, max",
    "x: float16; h[b, t] = inside(h[b, t - 1], 0) + x[b, t]": "x is float16; allowed",
    "where d <= b; h[b, t] = max[d](inside(h[b, t - 1], 0) + x[b, t, d])": "'where d <= b' bounds",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_served_is_told_in_words(text):
    extents = {a: 2 for a in "btd" if re.search(rf"\b{a}\b", text)}
    w = workload(text, **extents)
    assert re.search(REFUSED[text], SteppedTemplate.why_not(w, machine()))


def test_other_templates_say_that_they_walk_along_no_steps():
    found = serving(stepped("delta"), machine())
    assert [template.name for template in found.templates] == ["stepped"]


def test_programs_without_cycles_are_not_served():
    w = workload("y[b, t] = x[b, t] * 2", b=2, t=3)
    assert "no stage reads itself" in SteppedTemplate.why_not(w, machine())


def test_quantities_are_possible_and_linear_in_steps():
    few, many = (
        checked_quantities(space_of(stepped("delta", t=n, d=64), machine()), 1, 32)
        for n in (300, 3000)
    )
    assert many["flops"].max() == 10 * few["flops"].max()
    assert many["instructions"].min() > few["instructions"].max()


def test_every_rule_refuses_something_and_says_why():
    works = (stepped("delta", t=3, d=90, e=3000), stepped("gates", b=40, t=3000, d=3000))
    target = machine(threads=8, cores=8, l2_bytes=64 << 10)
    assert not silent_rules([space_of(w, target) for w in works], 200)
