"""The programs that have kernels with a state on a CPU, and reasons why others have none."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cpu.rows.served import ELEMENTS
from tilewright.spaces.cpu.states.view import why_no_array
from tilewright.spaces.cpu.vectors import doubles
from tilewright.spaces.derivation.recurrent.view import Recurrence, recurrence_of
from tilewright.spaces.derivation.rounding.reductions import dtypes_of_factors
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.adding import in_one_accumulator
from tilewright.spaces.workloads.workload import Workload

cached_recurrence = lru_cache(maxsize=64)(recurrence_of)


def why_no_recurrence(workload: Workload) -> str | None:
    """Say why a workload has no kernel with a state; return None if it has one."""
    try:
        view = cached_recurrence(workload.program)
    except InputError as reason:
        return str(reason)
    missing = doubles.why_no_function(workload.accumulator, workload.functions)
    return missing or why_no_array(view, ELEMENTS[workload.accumulator]) or _why_too_long(view)


def _why_too_long(view: Recurrence) -> str | None:
    stage, terms = view.program.stage[view.name], view.extent(view.position)
    most = in_one_accumulator(terms, dtypes_of_factors(view.program, stage))
    if terms > most:
        return f"there are {terms} positions; a state takes in up to {most}"
    return None
