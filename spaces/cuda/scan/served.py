"""The programs that have kernels of scans on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.rows.served import MOST_ROWS, why_not
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.scans.served import cached_scan, why_no_view
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.workload import Workload


def why_no_scan(workload: Workload, target: CudaTarget) -> str | None:
    """Return why a workload has no such kernels, in words; None if it has."""
    if reason := why_no_view(workload):
        return reason
    view = cached_scan(workload.program)
    try:
        scalar_math.prelude(workload.functions)
    except InputError as reason:
        return str(reason)
    if view.column_count > MOST_ROWS:
        return f"rows have {view.column_count} elements; at most {MOST_ROWS}"
    return why_not(view, target)
