"""Whole gradients of steps have kernels: the steps themselves, those back, and sums over all."""

import re

import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled
from tests.spaces.cycle_programs import TEXTS, extents_of
from tests.spaces.random_cycles import EXTENTS, random_cycles
from tilewright.spaces.language import program
from tilewright.spaces.registry import serving, space_for
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.gradients import differentiable, gradient
from tilewright.spaces.workloads.served import workload_of

PARTS = {
    ("tanh", ""): ["stepped", "stepped", "kept"],
    ("matrix", ""): ["stepped", "stepped", "kept"],
    ("matrix", "h"): ["stepped", "kept"],
    ("gates", ""): ["stepped", "stepped", "kept"],
    ("gates", "c,h"): ["stepped", "kept"],
    ("selective", "h"): ["stepped", "kept"],
    ("delta", ""): ["stepped", "stepped"],
    ("gated delta", ""): ["stepped", "stepped"],
}


@pytest.mark.parametrize(("name", "saved"), PARTS)
def test_gradients_without_saved_states_go_there_and_back(name, saved, tmp_path):
    made = program(TEXTS[name], **extents_of(name, b=3, d=20, t=7))
    derived = gradient(made, [operand.name for operand in made.operands], saved)
    found = serving(workload_of(derived), this_cpu())
    template = found.templates[0](found.workload, this_cpu())
    assert [part.name for part in template.templates] == PARTS[name, saved]
    check_sampled(Space(found.workload, this_cpu(), [template]), 2, 0, tmp_path)


def test_counts_of_terms_are_numbers(tmp_path):
    """A term that is the same for all points of a sum counts as often in the gradient."""
    text = "h[b, t] = tanh(sum[d](x[b, t, d] * inside(h[b, t - 1], 0) + y[b, t]))"
    derived = gradient(program(text, b=3, t=7, d=20), "x,y", "h")
    assert "sum[d](1)" in str(derived)
    found = serving(workload_of(derived), this_cpu())
    assert [template.name for template in found.templates] == ["stepped"]
    check_sampled(space_for(found.workload, this_cpu()), 2, 0, tmp_path)


def test_a_division_computes_the_stages_of_a_cycle_together(tmp_path):
    made = program(TEXTS["matrix"], **extents_of("matrix", b=4, d=20, t=12))
    found = serving(workload_of(gradient(made, "x,m")), this_cpu())
    divided = next(each for each in found.templates if each.name == "divided")
    template = divided(found.workload, this_cpu())
    check_sampled(Space(found.workload, this_cpu(), [template]), 2, 0, tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_kernels_of_gradients_of_random_cycles(seed, tmp_path):
    text = random_cycles(seed).text
    used = {axis: n for axis, n in EXTENTS.items() if re.search(rf"\b{axis}\b", text)}
    made = program(text, **used)
    found = serving(workload_of(gradient(made, differentiable(made))), this_cpu())
    template = found.templates[0](found.workload, this_cpu())
    check_sampled(Space(found.workload, this_cpu(), [template]), 1, 0, tmp_path)
