"""Into how many kernels a program is cut, whatever these are."""

from __future__ import annotations

import pytest

from tilewright.spaces.language import Program, program
from tilewright.spaces.staged.partition import MOST, partition, simplified
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload


def single(workload: Workload) -> type[Template] | str:
    """Serves programs of one stage."""
    return Template if len(workload.program.stages) == 1 else "too long"


def chain(count: int) -> Program:
    """So many stages, each of which needs the one before."""
    later = (f"m{k}[i] = max[j](x{k}[i, j] + m{k - 1}[i])" for k in range(1, count))
    return program("; ".join(["m0[i] = max[j](x0[i, j])", *later]), i=4, j=5)


@pytest.mark.parametrize("count", range(1, MOST + 1))
def test_as_many_parts_as_stages(count):
    parts = partition(chain(count), single)
    assert [str(stage) for part in parts for stage in part.program.stages] == [
        str(stage) for stage in chain(count).stages
    ]


@pytest.mark.parametrize("count", [MOST + 1, MOST + 2])
def test_a_program_of_more_parts_is_refused(count):
    assert partition(chain(count), single) == f"m{count - 1}: too long"
    assert len(partition(chain(count), single, most=count)) == count


class Spare(Template):
    """Serves anything, slowly."""

    name = "spare"


def summing(workload: Workload) -> type[Template] | str:
    """Serves programs that only add up."""
    return Template if {s.reducer for s in workload.program.stages} == {"sum"} else "no sum"


def test_one_part_that_nothing_serves_has_the_spare_template():
    made = program("s[i] = sum[j,k](x[i,j,k]); y = prod[i](s[i] + s[i // 2])", i=4, j=5, k=6)
    parts = simplified(made, summing, Spare)
    assert [(part.template, str(part.program.stages[-1])) for part in parts] == [
        (Template, "s[i] = sum[j, k](x[i, j, k])"),
        (Spare, "y = prod[i](s[i] + s[i // 2])"),
    ]


def test_a_cut_that_leaves_nearly_all_to_the_spare_template_is_none():
    made = program("s = sum[j](x[j]); y = prod[i,k](z[i,k] + s)", i=40, j=5, k=6)
    assert simplified(made, summing, Spare) == (
        "no part of it has a fast kernel that is worth the arrays between"
    )
