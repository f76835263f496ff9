"""The programs that have kernels along kept axes on a CPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.kept.prelude import prelude
from tilewright.spaces.cpu.rows.served import ELEMENTS
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors import doubles
from tilewright.spaces.derivation.kept.served import why_no_array, why_no_place
from tilewright.spaces.derivation.kept.view import cached_kept
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.workload import Workload


def why_not_kept(workload: Workload, target: CpuTarget) -> str | None:
    """Say why a workload has no kernel along kept axes; return None if it has one."""
    try:
        view = cached_kept(workload.program)
        prelude(frozenset(workload.functions), target, workload.accumulator)
    except InputError as reason:
        return str(reason)
    missing = doubles.why_no_function(workload.accumulator, workload.functions)
    floats = ELEMENTS[workload.accumulator]
    return missing or why_no_array(view, floats) or why_no_place(view)
