"""The programs that have kernels of scans on a CPU, and reasons why others have none."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cpu.rows.served import why_not_computed
from tilewright.spaces.derivation.scans.view import scan_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.workload import Workload

cached_scan = lru_cache(maxsize=64)(scan_of)


def why_no_scan(workload: Workload) -> str | None:
    """Say why a workload has no kernel of scans; return None if it has one."""
    if not isinstance(workload, Computation):
        return "it is a product of matrices; scans are of programs"
    try:
        view = cached_scan(workload.program)
    except InputError as reason:
        return str(reason)
    if view.gathers:
        return "entries of tables choose rows"
    return why_not_computed(workload, view)
