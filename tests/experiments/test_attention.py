"""The comparison of attention on a GPU: its cases, and the schedules that it always tries."""

from __future__ import annotations

import pytest

from experiments.attention.cases import CASES, FIXED, completed
from spaces.cuda.chained.template import CudaChained
from spaces.cuda.chained_hopper.template import ChainedHopper
from spaces.cuda.target import cuda_target
from spaces.space import Space
from spaces.template import Template

TARGET = cuda_target("sm_90a")


def valid(template: type[Template], case) -> int:
    """How many of the fixed schedules a case can be computed by."""
    made = template(case.workload, TARGET)
    space = Space(case.workload, TARGET, [made])
    schedules = (completed(made, values) for values in FIXED[made.name])
    return sum(bool(s) and space.why_not(s) is None for s in schedules)


@pytest.mark.parametrize("case", CASES[:15], ids=lambda case: case.name)
def test_each_case_has_schedules_that_are_tried(case):
    assert CudaChained.refuses(case.workload, TARGET) is None
    assert valid(CudaChained, case) >= 3
    if case.queries > 1 and not ChainedHopper.refuses(case.workload, TARGET):
        assert valid(ChainedHopper, case) >= 4


def test_ten_operators_are_compared_at_each_length():
    assert len({case.name for case in CASES}) == len(CASES) == 8 * 10 + 8
