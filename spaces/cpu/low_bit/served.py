"""Programs that have kernels with packed codes on a CPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.loops.prelude import C_TYPES, LIBRARY
from tilewright.spaces.low_bit.served import why_no_codes
from tilewright.spaces.workloads.workload import Workload


def why_not(workload: Workload) -> str | None:
    """Say why a workload has no kernel; return None if it has one."""
    if reason := why_no_codes(workload, C_TYPES):
        return reason
    if called := sorted(LIBRARY.keys() & workload.functions):
        return f"{called[0]} is called; needs functions that kernels have themselves"
    return None
