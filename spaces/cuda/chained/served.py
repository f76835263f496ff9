"""Which programs have chained kernels on a GPU, and why others have none."""

from __future__ import annotations

from spaces.cuda.abi import C_TYPES
from spaces.cuda.target import CudaTarget
from spaces.derivation.chained.view import Chained, chained_of
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload

MULTIPLIED = ("float16", "bfloat16")
"""What matrix instructions multiply here."""
MOST_KEYS = 2**24
"""Keys up to which float32 tells their numbers apart."""


def why_not_chained(workload: Workload, target: CudaTarget) -> str | None:
    """The reason in words; None if there are kernels."""
    if not isinstance(workload, Computation):
        return "it is a product of matrices; needs a chain of reductions over its columns"
    if not target.has("mma"):
        return f"{target.name} lacks the instruction (mma)"
    found = chained_of(workload.program)
    if isinstance(found, str):
        return found
    return _why_no_array(found) or _why_no_product(found)


def multiplied(chained: Chained) -> str | None:
    """The dtype in which products are multiplied: that of the 16-bit arrays among their factors;
    None if there are none, or of both."""
    factors = [chained.left, chained.right, *(w.matrix for w in chained.weighings)]
    names = {read.name for factor in factors for read in factor.reads}
    found = {chained.program.operand[name].dtype for name in names} & set(MULTIPLIED)
    return found.pop() if len(found) == 1 else None


def _why_no_array(chained: Chained) -> str | None:
    for array in (*chained.program.operands, *chained.program.outputs):
        if array.dtype not in C_TYPES or array.dtype == "float64":
            allowed = ", ".join(name for name in C_TYPES if name != "float64")
            return f"{array.name} is {array.dtype}; allowed: {allowed}"
    if chained.key.extent > MOST_KEYS:
        return f"there are {chained.key.extent} keys; allowed: up to {MOST_KEYS}"
    return None


def _why_no_product(chained: Chained) -> str | None:
    kind = multiplied(chained)
    if kind is None:
        kinds = " or ".join(MULTIPLIED)
        return f"its products have no factor, or several kinds, of {kinds} (dtype=bfloat16)"
    unscaled = [w for w in chained.weighings if w.reduction.correction is None]
    if kind == "float16" and unscaled:
        return f"{unscaled[0].weight} may leave the range of float16"
    return None
