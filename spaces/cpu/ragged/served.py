"""Programs that have kernels over ranges on a CPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.ragged.prelude import prelude
from tilewright.spaces.cpu.rows.served import ELEMENTS
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors import doubles
from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.derivation.ragged.served import why_no_array
from tilewright.spaces.derivation.ragged.view import RaggedView, cached_ragged
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.workload import Workload


def why_not_ragged(workload: Workload, target: CpuTarget) -> str | None:
    """Say why a workload has no kernel over ranges; return None if it has one."""
    try:
        view = cached_ragged(workload.program)
        prelude(frozenset(workload.functions), target, workload.accumulator)
    except InputError as reason:
        return str(reason)
    missing = doubles.why_no_function(workload.accumulator, workload.functions)
    floats = ELEMENTS[workload.accumulator]
    return missing or why_no_array(view, floats, tuple(TABLE_TYPES)) or _why_no_lane(view)


def _why_no_lane(view: RaggedView) -> str | None:
    """Say why a read cannot be a vector: its elements along the lanes have no one step; None if all
    can."""
    entry = view.range.entry
    for step in view.steps:
        for read in step.body.value_reads:
            if step.lane != entry and view.places[read].step(step.lane) is None:
                return f"{read} is not equally far apart along {step.lane}"
    for output in view.outputs:
        for read in output.value.value_reads:
            if output.lane and not output.along and view.places[read].step(output.lane) is None:
                return f"{read} is not equally far apart along {output.lane}"
    return None
