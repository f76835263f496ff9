"""The programs that have pairwise kernels on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.chained.kinds import rounded_further
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.pairwise.view import Pairwise, pairwise_of
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.workload import Workload

KIND = "bfloat16"
"""The dtype in which products are multiplied: weights that nothing bounds may leave float16."""


def why_not_pairwise(workload: Workload, target: CudaTarget) -> str | None:
    """Return why a workload has no pairwise kernel, in words; None if it has one."""
    if not isinstance(workload, Computation):
        return "it is a product of matrices; needs sums over pairs of rows and keys"
    if not target.has("mma"):
        return f"{target.name} lacks the instruction (mma)"
    found = pairwise_of(workload.program)
    if isinstance(found, str):
        return found
    return _why_no_array(found) or _why_no_product(found)


def _why_no_array(found: Pairwise) -> str | None:
    floats = ("float32", "float16", "bfloat16")
    for output in found.program.outputs:
        if output.dtype not in floats:
            return f"{output.name} is {output.dtype}; allowed: {', '.join(floats)}"
    for operand in found.program.operands:
        if operand.dtype not in C_TYPES or operand.dtype.startswith(("float64", "float8")):
            return f"{operand.name} is {operand.dtype}, and kernels read no such elements"
    if max(found.key.extent, found.row_count) > EXACT:
        return f"there are {found.row_count} rows and {found.key.extent} keys; allowed: {EXACT}"
    return None


def _why_no_product(found: Pairwise) -> str | None:
    read = {
        read.name for side, _ in (*found.row_matrices, *found.key_matrices) for read in side.reads
    }
    arrays = {o.dtype for o in found.program.operands if o.name in read}
    if KIND not in arrays or "float16" in arrays:
        return f"its products are of {', '.join(sorted(arrays))}; needs factors of {KIND}"
    products = [(score.read.name, (score.left, score.right), KIND) for score in found.scores]
    products += [(s.output.array.name, (s.matrix, s.weight), KIND) for s in found.sums]
    if further := rounded_further(found.program, products):
        factor, kind = further
        return f"{factor} would be rounded to {kind}, in a product that means float32"
    return None
