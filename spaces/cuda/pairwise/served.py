"""The programs that have pairwise kernels on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda.chains.served import kind_of_factors, why_no_array, why_no_product
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.pairwise.view import Pairwise, pairwise_of
from tilewright.spaces.language.tree import Expression
from tilewright.spaces.workloads.workload import Workload


def kind_of(found: Pairwise) -> str | None:
    """Return the dtype in which products are multiplied; None if there is none, or several."""
    return kind_of_factors(found.program, _factors(found))


def why_not_pairwise(workload: Workload, target: CudaTarget) -> str | None:
    """Return why a workload has no pairwise kernel, in words; None if it has one."""
    if not target.has("mma"):
        return f"{target.name} lacks the instruction (mma)"
    found = pairwise_of(workload.program)
    if isinstance(found, str):
        return found
    return why_no_array(found) or _why_no_product(found)


def _why_no_product(found: Pairwise) -> str | None:
    kind = kind_of(found) or ""
    products = [(score.read.name, (score.left, score.right), kind) for score in found.scores]
    products += [(s.output.array.name, (s.matrix, s.weight), kind) for s in found.sums]
    return why_no_product(found.program, _factors(found), products)


def _factors(found: Pairwise) -> list[Expression]:
    return [side for side, _ in (*found.row_matrices, *found.key_matrices)]
