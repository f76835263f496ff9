"""The programs that have chunked kernels on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda.chains.served import kind_of_factors, why_no_array, why_no_product
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.algebra import product
from tilewright.spaces.derivation.recurrent.chunks import Chunks, chunks_of
from tilewright.spaces.derivation.rounding.reductions import dtypes_of_factors
from tilewright.spaces.language.tree import Read
from tilewright.spaces.numerics.adding import in_one_accumulator
from tilewright.spaces.workloads.workload import Workload


def kind_of(view: Chunks) -> str | None:
    """Return the dtype in which products are multiplied; None if there is none, or several."""
    return kind_of_factors(view.program, (view.left, view.right, view.matrix))


def why_not_chunked(workload: Workload, target: CudaTarget) -> str | None:
    """Return why a workload has no chunked kernel, in words; None if it has one."""
    if not target.has("mma"):
        return f"{target.name} lacks the instruction (mma)"
    view = chunks_of(workload.program)
    if isinstance(view, str):
        return view
    return why_no_array(view) or _why_no_product(view) or _why_too_long(view)


def _why_no_product(view: Chunks) -> str | None:
    factors, kind = (view.left, view.right, view.matrix), kind_of(view) or ""
    products = [(view.score or view.carried.name, factors[:2], kind)]
    products.append((view.carried.name, (view.matrix, product(factors[:2])), kind))
    if reason := why_no_product(view.program, factors, products):
        return reason
    return _why_not_in_one_sum(view, kind) if view.score is None else None


def _why_not_in_one_sum(view: Chunks, kind: str) -> str | None:
    """Say why a sum has no kernel whose terms are those of scores, too; return None if it has one.
    Its scores are no numbers of the program, which float16 may not hold."""
    if kind == "float16":
        return "its scores may be too large for float16; needs a sum of their own"
    for factor in (view.left, view.right, view.matrix):
        if not isinstance(factor, Read):
            return f"{factor} would be rounded to {kind}, in a product that means float32"
    if view.has_weight and not view.has_rounded_scores:
        return f"{view.weight} would be rounded to {kind}, in a product that means float32"
    return None


def _why_too_long(view: Chunks) -> str | None:
    stage, terms = view.program.stage[view.carried.name], view.key.extent
    most = in_one_accumulator(terms, dtypes_of_factors(view.program, stage))
    if terms > most:
        return f"there are {terms} positions; a state takes in up to {most}"
    return None
