"""The programs that have chained kernels on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.chained.kinds import FLOAT8, HALVES, kinds_of, rounded_too_far
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.workloads.workload import Workload


def why_not_chained(workload: Workload, target: CudaTarget) -> str | None:
    """Return why a workload has no chained kernels, in words; None if it has."""
    if not target.has("mma"):
        return f"{target.name} lacks the instruction (mma)"
    found = chained_of(workload.program)
    if isinstance(found, str):
        return found
    return _why_no_array(found, target) or _why_no_product(found)


def _why_no_array(chained: Chained, target: CudaTarget) -> str | None:
    for output in chained.program.outputs:
        if output.dtype in ("int64", "uint8", "bool"):
            return f"{output.name} is {output.dtype}, and kernels store no such elements"
    for array in (*chained.program.operands, *chained.program.outputs):
        if array.dtype not in C_TYPES or array.dtype == "float64":
            allowed = ", ".join(name for name in C_TYPES if name != "float64")
            return f"{array.name} is {array.dtype}; allowed: {allowed}"
        if array.dtype in FLOAT8 and not target.has("mma_fp8"):
            return f"{target.name} does not convert {array.dtype} (mma_fp8)"
    if chained.key.extent > EXACT:
        return f"there are {chained.key.extent} keys; allowed: up to {EXACT}"
    return None


def _why_no_product(chained: Chained) -> str | None:
    kinds = kinds_of(chained)
    if kinds is None:
        halves = " or ".join(HALVES)
        return (
            f"its products have no factor, or several kinds, of {halves} (dtype=bfloat16), "
            "and scores are not of float8 arrays alone"
        )
    if found := rounded_too_far(chained, kinds):
        factor, kind = found
        return (
            f"{factor} would be rounded to {kind}, in a product that means float32; "
            f"allowed: a cast in the text, {kind}(...)"
        )
    unscaled = [w for w in chained.weighings if w.reduction.correction is None]
    if "float16" in kinds.weights and unscaled:
        return f"{unscaled[0].weight} may leave the range of float16"
    return None
