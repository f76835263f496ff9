"""Whole gradients of steps have kernels: the steps themselves, those back, and sums over all."""

import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled
from tests.spaces.cycle_programs import TEXTS, extents_of
from tilewright.spaces.language import program
from tilewright.spaces.registry import serving
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.gradients import gradient
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


def test_a_division_computes_the_stages_of_a_cycle_together(tmp_path):
    made = program(TEXTS["matrix"], **extents_of("matrix", b=4, d=20, t=12))
    found = serving(workload_of(gradient(made, "x,m")), this_cpu())
    divided = next(each for each in found.templates if each.name == "divided")
    template = divided(found.workload, this_cpu())
    check_sampled(Space(found.workload, this_cpu(), [template]), 2, 0, tmp_path)
