"""The programs that have kernels of steps on a CPU, and reasons why others have none."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cpu.rows.served import ELEMENTS
from tilewright.spaces.cpu.states.view import why_no_array
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors import doubles
from tilewright.spaces.derivation.rounding.reductions import dtypes_of_factors
from tilewright.spaces.derivation.stepped.view import SteppedView, stepped_view
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program
from tilewright.spaces.numerics.adding import in_one_accumulator
from tilewright.spaces.workloads.workload import Workload

MOST_VECTORS = 8
"""The most vectors of lanes that are reduced, which go through a step together."""


@lru_cache(maxsize=64)
def cached_view(program: Program, lanes: int) -> SteppedView:
    """Return how a program is computed step by step in vectors of so many lanes."""
    return stepped_view(program, borders=True, across=MOST_VECTORS * lanes)


def lanes_of(workload: Workload, cpu: CpuTarget) -> int:
    """Return the lanes of a vector of the dtype that a workload is computed in."""
    return cpu.lanes(dtype(workload.accumulator).bytes)


def why_not_stepped(workload: Workload, cpu: CpuTarget) -> str | None:
    """Say why a workload has no kernel of steps; return None if it has one."""
    program = workload.program
    if program.accumulator not in ("", workload.accumulator):
        return f"sums are kept in {program.accumulator}; allowed: {workload.accumulator}"
    try:
        view = cached_view(program, lanes_of(workload, cpu))
    except InputError as reason:
        return str(reason)
    missing = doubles.why_no_function(workload.accumulator, workload.functions)
    return missing or why_no_array(view, ELEMENTS[workload.accumulator]) or _why_too_long(view)


def _why_too_long(view: SteppedView) -> str | None:
    for stage in view.stages:
        terms = view.extent(*stage.over)
        most = in_one_accumulator(terms, dtypes_of_factors(view.program, stage))
        if stage.reducer == "sum" and terms > most:
            return f"{stage.name} has {terms} terms; one accumulator takes in up to {most}"
    return None
