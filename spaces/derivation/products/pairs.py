"""Programs of two products that share a factor: one product whose columns come in pairs.

    output[row, column] = value(sum[depth](left[row, depth] * right[depth, column]),
                                sum[depth](left[row, depth] * twin[depth, column]))

Both right factors have the same layout. A kernel that multiplies a tile of columns of one, and the
same columns of the other, has all inputs of these output elements. The pair is found by cutting the
program after one of its sums (:mod:`spaces.derivation.cutting`): the operand that the second part
reads beside its own sum is then the sum of the first part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from tilewright.spaces.derivation.cutting import cuts
from tilewright.spaces.derivation.products.view import Factor, PlacedProduct, placed_product_in
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import AxisValue, Read


@dataclass(frozen=True)
class Pair:
    """The ``product`` of the left and the right factor, and the ``twin`` of the right one. The
    value that is written reads ``other``, the twin's sum, which is not among the places."""

    product: PlacedProduct
    twin: Factor
    other: Read


@lru_cache(maxsize=64)
def pair_in(program: Program) -> Pair | str:
    """Return the pair that a program is, or why it is none, in words."""
    for first, second in cuts(program):
        found = _pair(first, second)
        if found:
            return found
    return "needs two products that share a factor, and a map of both"


def _pair(first: Program, second: Program) -> Pair | None:
    one, two = placed_product_in(first), placed_product_in(second)
    if isinstance(one, str) or isinstance(two, str) or one.fused or not _are_alike(one, two):
        return None
    axes = first.stage[one.output.name].axes
    reads = [read for read in two.places if read.name == one.output.name]
    if [read.indices for read in reads] != [tuple(map(AxisValue, axes))]:
        return None
    beside = {read: place for read, place in two.places.items() if read not in reads}
    return Pair(replace(two, places=beside), one.right, reads[0])


def _are_alike(one: PlacedProduct, two: PlacedProduct) -> bool:
    """Tell whether two products differ only in the name of the right factor's array."""
    name = two.right.operand.name
    twin = replace(one.right.operand, name=name)
    at = replace(one.right.place, name=name)
    return (one.left, one.batch, one.rows, one.columns, one.depth) == (
        *(two.left, two.batch, two.rows, two.columns, two.depth),
    ) and (twin, at, one.right.indices) == (two.right.operand, two.right.place, two.right.indices)
