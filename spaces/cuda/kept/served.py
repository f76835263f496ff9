"""The programs that have kernels along kept axes on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.abi import FLOATS
from tilewright.spaces.derivation.kept.served import why_no_array, why_no_place
from tilewright.spaces.derivation.kept.view import cached_kept
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.workload import Workload


def why_not_kept(workload: Workload) -> str | None:
    """Return why a workload has no such kernels, in words; None if it has."""
    try:
        view = cached_kept(workload.program)
        scalar_math.prelude(workload.functions)
    except InputError as reason:
        return str(reason)
    return why_no_array(view, FLOATS) or why_no_place(view)
