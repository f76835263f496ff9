"""The programs that have pairwise kernels on a CPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.cpu.vectors.simd import FLOATS
from tilewright.spaces.derivation.pairwise.view import pairwise_of
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.workloads.workload import Workload


def why_not_pairwise(workload: Workload) -> str | None:
    """Say why a workload has no pairwise kernel; return None if it has one."""
    found = pairwise_of(workload.program)
    if isinstance(found, str):
        return found
    written = {output.name for output in found.program.outputs}
    for array in (*found.program.operands, *found.program.outputs):
        allowed = FLOATS if array.name in written else (*FLOATS, *TABLE_TYPES)
        if array.dtype not in allowed:
            return f"{array.name} is {array.dtype}; allowed: {', '.join(allowed)}"
    if found.key.extent > EXACT:
        return f"there are {found.key.extent} keys; allowed: up to {EXACT}"
    return None
