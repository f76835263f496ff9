"""Which programs have chained kernels on Hopper, and why others have none."""

from __future__ import annotations

from spaces.cuda.chained import served
from spaces.cuda.chained.kinds import HALVES
from spaces.cuda.chained_hopper.fetching.operands import key_boxes, left_boxes, right_boxes
from spaces.cuda.chained_hopper.fetching.tiles import tiled
from spaces.cuda.chained_hopper.sizes import ChainedSizes
from spaces.cuda.target import CudaTarget
from spaces.derivation.chained.view import Chained, chained_of
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload

WIDEST = 256
"""Columns of one wgmma, and so of the sums; a score has as many terms, for shared memory's sake."""


def why_not_chained(workload: Workload, target: CudaTarget) -> str | None:
    """The reason in words; None if there are kernels."""
    if reason := served.why_not_chained(workload, target):
        return reason
    assert isinstance(workload, Computation)
    found = chained_of(workload.program)
    assert isinstance(found, Chained)
    return _why_no_products(found) or _why_no_boxes(tiled(found))


def _why_no_products(chained: Chained) -> str | None:
    if places := chained.found_places:
        return f"{places[0]} is a place; this template gives values"
    if len(chained.weighings) != 1:
        return f"{len(chained.weighings)} matrices are weighed; this template takes 1"
    factors = (chained.left, chained.right, chained.weighings[0].matrix)
    found = []
    for factor in factors:
        read = chained.in_place(factor)
        if read is None:
            return f"{factor} is no array in place, which TMA could bring"
        found.append(chained.program.operand[read.name].dtype)
    if len(set(found)) > 1 or found[0] not in HALVES:
        return f"factors are {', '.join(found)}; allowed: one type of 16 bits"
    for part in (chained.depth, chained.width):
        if part.extent > WIDEST:
            return f"{part.name} has {part.extent} points; allowed: up to {WIDEST}"
    return None


def _why_no_boxes(chained: Chained) -> str | None:
    boxes = (
        left_boxes(chained),
        right_boxes(ChainedSizes(chained), 1),
        key_boxes(chained, chained.weighings[0].matrix, chained.width, 1),
    )
    return next((reason for box in boxes if (reason := box.why_not())), None)
