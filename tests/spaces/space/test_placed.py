"""Placing many schedules at once is the same as asking each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.spaces.frozen import TARGETS
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


def of_any_kind(space: Space, count: int) -> list[Schedule]:
    """Schedules that are valid, that break rules, and that are of no such decisions."""
    generator = np.random.default_rng(3)
    valid = [space.schedule(row) for row in space.sample(generator, count)]
    combined = [
        Schedule(
            template.name,
            tuple(
                (each.name, each.values[generator.integers(len(each.values))])
                for each in template.decisions
            ),
        )
        for template in space.templates.values()
        for _ in range(count)
    ]
    first = valid[0]
    strange = [
        Schedule("nothing", ()),
        replace(first, decisions=first.decisions[1:]),
        replace(first, decisions=((first.decisions[0][0], "x"), *first.decisions[1:])),
    ]
    return [*valid, *strange, *combined]


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_many_schedules_are_placed_as_each_alone(target):
    space = space_for(workload("matmul", m=96, n=80, k=72), target)
    schedules = of_any_kind(space, 20)
    found = space.placed(schedules)
    assert [row is not None for row in found] == [each in space for each in schedules]
    assert any(row is None for row in found[20:])
    for schedule, row in zip(schedules, found, strict=True):
        if row is not None:
            assert space.schedule(row) == schedule
    assert space.placed([]) == []
