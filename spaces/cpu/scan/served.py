"""The programs that have kernels of scans on a CPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.rows.served import why_not_computed
from tilewright.spaces.derivation.scans.served import cached_scan, why_no_view
from tilewright.spaces.workloads.workload import Workload


def why_no_scan(workload: Workload) -> str | None:
    """Say why a workload has no kernel of scans; return None if it has one."""
    if reason := why_no_view(workload):
        return reason
    view = cached_scan(workload.program)
    if view.gathers:
        return "entries of tables choose rows"
    return why_not_computed(workload, view)
