"""The quantities of kernels that run in turn, as those of one."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.cpu.staged.template import StagedTemplate
from tilewright.spaces.operators import workload
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.space import Space
from tilewright.spaces.staged import lifted
from tilewright.spaces.testing.targets import made_up_cpu

TARGET = made_up_cpu(threads=4)
WORK = workload("gated_matmul", m=64, n=96, k=32)


@pytest.fixture(scope="module")
def quantities():
    """Of each part of some schedules, and of the whole; [part or whole, schedule] by name."""
    space = Space(WORK, TARGET, [StagedTemplate(WORK, TARGET)])
    parts = StagedTemplate(WORK, TARGET).templates
    rows = space.sample(np.random.default_rng(0), 50)
    decided = [lifted.schedules(parts, (1, 2), space.schedule(row)) for row in rows]
    found = []
    for number, part in enumerate(parts):
        own = Space(part.workload, TARGET, [part])
        found.append(own.quantities(own.rows([each[number] for each in decided])))
    whole = space.quantities(rows)
    return {name: (np.array([each[name] for each in found]), whole[name]) for name in QUANTITIES}


def test_parts_differ(quantities):
    for name in ("registers", "near_footprint", "parallelism", "independent_chains"):
        parts, _ = quantities[name]
        assert (parts[0] != parts[1]).any()


@pytest.mark.parametrize("name", ["flops", "instructions", "near_bytes", "main_bytes"])
def test_what_is_done_and_moved_adds_up(quantities, name):
    parts, whole = quantities[name]
    np.testing.assert_array_equal(whole, parts.sum(axis=0))


@pytest.mark.parametrize("name", ["registers", "near_footprint", "middle_fraction", "imbalance"])
def test_what_must_have_room_is_that_of_the_largest(quantities, name):
    parts, whole = quantities[name]
    np.testing.assert_array_equal(whole, parts.max(axis=0))


@pytest.mark.parametrize("name", ["parallelism", "vector_fraction", "independent_chains"])
def test_what_helps_is_that_of_the_least(quantities, name):
    parts, whole = quantities[name]
    np.testing.assert_array_equal(whole, parts.min(axis=0))
