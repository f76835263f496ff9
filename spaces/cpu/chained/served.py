"""The programs that have chained kernels on a CPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.cpu.vectors.simd import FLOATS
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.workload import Workload


def why_not_chained(workload: Workload) -> str | None:
    """Say why a workload has no chained kernel; return None if it has one."""
    found = chained_of(workload.program)
    if isinstance(found, str):
        return found
    return _why_no_array(found) or _why_no_matrix(found)


def _why_no_array(chained: Chained) -> str | None:
    program = chained.program
    outputs = {output.array.name: output.value for output in chained.outputs}
    for array in (*program.operands, *program.outputs):
        value = outputs.get(array.name)
        allowed = FLOATS if value else (*FLOATS, *TABLE_TYPES)
        if isinstance(value, Read) and value.name in chained.found_places:
            allowed = ("int32", "int64")
        if array.dtype not in allowed:
            return f"{array.name} is {array.dtype}; allowed: {', '.join(allowed)}"
    if chained.key.extent > EXACT:
        return f"there are {chained.key.extent} keys; allowed: up to {EXACT}"
    return None


def _why_no_matrix(chained: Chained) -> str | None:
    read = chained.in_place(chained.right)
    if read and 1 not in (chained.step(read, p) for p in (chained.depth, chained.key)):
        return f"{read} is contiguous neither along {chained.depth.name} nor along keys"
    return None
