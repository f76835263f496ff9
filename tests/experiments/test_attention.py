"""The comparison of attention on a GPU: its cases, and the schedules that it always tries."""

from __future__ import annotations

import pytest

from experiments.attention.cases import CASES, FIXED
from spaces.cuda.chained_hopper.template import ChainedHopper
from spaces.cuda.target import cuda_target
from spaces.schedule import Schedule
from spaces.space import Space

TARGET = cuda_target("sm_90a")


@pytest.mark.parametrize("case", CASES[:12], ids=lambda case: case.name)
def test_each_case_has_schedules_that_are_tried(case):
    w = case.workload
    template = ChainedHopper(w, TARGET)
    names = [decision.name for decision in template.decisions]
    known = {decision.name: decision.values for decision in template.decisions}
    schedules = [
        Schedule(template.name, tuple((name, values[name]) for name in names))
        for values in FIXED
        if all(values[name] in known[name] for name in names)
    ]
    space = Space(w, TARGET, [template])
    assert sum(space.why_not(schedule) is None for schedule in schedules) >= 6
    assert case.flops == pytest.approx(w.flops, rel=0.02)
