"""The programs that have pairwise kernels on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.chained.kinds import HALVES, rounded_further
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.pairwise.view import Pairwise, pairwise_of
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.workloads.workload import Workload


def kind_of(found: Pairwise) -> str | None:
    """Return the dtype in which products are multiplied: the one of 16 bits that arrays of factors
    have; None if there is none, or both."""
    kinds = _dtypes(found) & set(HALVES)
    return kinds.pop() if len(kinds) == 1 else None


def why_not_pairwise(workload: Workload, target: CudaTarget) -> str | None:
    """Return why a workload has no pairwise kernel, in words; None if it has one."""
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
    kind = kind_of(found)
    if kind is None:
        arrays = ", ".join(sorted(_dtypes(found)))
        return f"its products are of {arrays}; needs factors of {' or '.join(HALVES)}"
    products = [(score.read.name, (score.left, score.right), kind) for score in found.scores]
    products += [(s.output.array.name, (s.matrix, s.weight), kind) for s in found.sums]
    if further := rounded_further(found.program, products):
        return f"{further[0]} would be rounded to {kind}, in a product that means float32"
    return None


def _dtypes(found: Pairwise) -> set[str]:
    """Return the dtypes of the arrays that are factors."""
    matrices = (*found.row_matrices, *found.key_matrices)
    read = {read.name for side, _ in matrices for read in side.reads}
    return {o.dtype for o in found.program.operands if o.name in read}
