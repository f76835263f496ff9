"""The programs that have kernels over ranges on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.abi import FLOATS
from tilewright.spaces.derivation.ragged.served import why_no_array
from tilewright.spaces.derivation.ragged.view import cached_ragged
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.workload import Workload

TABLES = ("int32", "int64", "uint16", "uint8", "int8")
"""The dtypes of tables of indices."""


def why_not_ragged(workload: Workload) -> str | None:
    """Return why a workload has no kernel over ranges, in words; None if it has one."""
    try:
        view = cached_ragged(workload.program)
        scalar_math.prelude(workload.functions)
    except InputError as reason:
        return str(reason)
    return why_no_array(view, FLOATS, TABLES)
