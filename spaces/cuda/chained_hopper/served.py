"""The programs that have chained kernels on Hopper, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda.chained import served
from tilewright.spaces.cuda.chained.kinds import FLOAT8, HALVES, kinds_of
from tilewright.spaces.cuda.chained_hopper.fetching.operands import (
    left_boxes,
    right_boxes,
    value_boxes,
)
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import SLICE, tiled
from tilewright.spaces.cuda.chained_hopper.fetching.transposing import TransposedCopy
from tilewright.spaces.cuda.chained_hopper.sizes import ChainedSizes
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.numerics.adding import IN_ONE_OF_FLOAT8
from tilewright.spaces.workloads.workload import Workload

WIDEST = 256
"""The most columns of one wgmma, and so of the sums.

It also bounds the terms of a score, so that shared memory suffices.
"""


def why_not_chained(workload: Workload, target: CudaTarget) -> str | None:
    """Return why a workload has no such kernels, in words; None if it has."""
    if reason := served.why_not_chained(workload, target):
        return reason
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
    halves = len(set(found)) == 1 and found[0] in HALVES
    if not halves and not set(found) <= set(FLOAT8):
        return f"factors are {', '.join(found)}; allowed: one type of 16 bits, or float8"
    for part in (chained.depth, chained.width):
        if part.extent > WIDEST:
            return f"{part.name} has {part.extent} points; allowed: up to {WIDEST}"
    return None


def _why_no_boxes(chained: Chained) -> str | None:
    sizes = ChainedSizes(chained)
    if sizes.has_bytes and (reason := _why_no_bytes(sizes)):
        return reason
    boxes = (left_boxes(chained), right_boxes(sizes, 1), value_boxes(sizes, 1))
    return next((reason for box in boxes if (reason := box.why_not())), None)


def _why_no_bytes(sizes: ChainedSizes) -> str | None:
    """Return why factors of 8 bits are not multiplied, in words; None if they are."""
    chained = sizes.chained
    kinds = kinds_of(chained)
    if kinds is None or kinds.weights[0] not in FLOAT8:
        return f"{chained.weighings[0].weight} is no weight of at most one, as float8 needs it"
    if chained.depth.extent > IN_ONE_OF_FLOAT8:
        return (
            f"{chained.depth.name} has {chained.depth.extent} points; wgmma adds up to "
            f"{IN_ONE_OF_FLOAT8} products of 8 bits exactly enough"
        )
    if chained.row_count < SLICE:
        return (
            f"{chained.row_count} rows share a matrix of 8 bits, which is copied first; needs "
            f"{SLICE}, or the copy takes longer than the rest"
        )
    if sizes.lies_along_keys:
        return f"{chained.right} lies along {chained.key.name}; needs 8 bits along its depth"
    return TransposedCopy(chained).why_not()
