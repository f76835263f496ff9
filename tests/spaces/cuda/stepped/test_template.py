"""The CUDA template of steps: its space, its rules, and what it serves."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.measure.cuda.kernels.test_stepped_kernels import cycle, recurrence
from tests.spaces import cycle_programs, recurrent_programs
from tilewright.spaces.cuda.stepped.template import CudaStepped
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import serving
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")


def space_of(w: Workload) -> Space:
    return Space(w, H200, [CudaStepped(w, H200)])


@pytest.mark.parametrize("name", [n for n in cycle_programs.TEXTS if n != "heat"])
def test_cycles_are_served_by_steps_alone(name):
    found = serving(cycle(name), H200)
    assert [template.name for template in found.templates] == ["stepped"]


@pytest.mark.parametrize("name", recurrent_programs.TEXTS)
def test_recurrences_are_served(name):
    found = serving(recurrence(name), H200)
    assert "stepped" in [template.name for template in found.templates]


@pytest.mark.parametrize(
    "w",
    [
        cycle("delta", d=128, e=128, t=4096),
        cycle("gates", d=300),
        recurrence("gated", h=8, t=2048, d=64, e=64),
    ],
    ids=["delta", "gates", "gated"],
)
def test_quantities_are_complete_and_possible(w):
    space = space_of(w)
    checked_quantities(space, seed=0, schedules=60)
    for row in space.sample(np.random.default_rng(1), 4):
        (launch,) = space.lower(space.schedule(row)).call.launches
        assert 0 < launch.shared_bytes <= H200.shared_per_block


def test_work_is_linear_in_steps():
    few, many = (
        checked_quantities(space_of(cycle("delta", d=64, e=64, t=n)), 1, 32) for n in (512, 5120)
    )
    assert many["flops"].max() == 10 * few["flops"].max()
    assert np.median(many["instructions"]) > np.median(few["instructions"])


def test_every_rule_refuses_something_and_says_why():
    works = (
        cycle("delta", d=3, e=2000, t=3),
        cycle("gates", d=40, t=3000),
        cycle("selective", d=300, e=3, t=3000),
    )
    assert silent_rules([space_of(w) for w in works], 400) <= {"grid", "shared_memory"}


def test_cycles_that_are_not_served_are_told_in_words():
    assert "is read at 'd - 1'" in str(serving(cycle("heat"), H200))


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a product of matrices"),
        (workload("softmax", r=4, c=8), "made of one sum"),
        (workload("y[b, t] = x[b, t] * 2", b=2, t=3), "made of one sum"),
        (cycle("delta", "v: float64\n"), "computed in float64"),
        (cycle("gates", "x: int32\n"), "x is int32; allowed: float32"),
        (cycle("delta", e=2049), "over 2049 points; a warp keeps 2048"),
        (recurrence("linear attention", t=1 << 17), "y has 131072 terms"),
    ],
)
def test_refusals_say_why(w, words):
    assert re.search(re.escape(words), str(CudaStepped.why_not(w, H200)))
