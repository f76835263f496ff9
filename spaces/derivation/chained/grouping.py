"""Brings together what multiplies all scores of a row, so that each is multiplied once."""

from __future__ import annotations

from dataclasses import replace

from tilewright.spaces.derivation.algebra import constant, factors, product, times
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.language.tree import Binary, Expression, Read


def with_row_factors(chained: Chained) -> Chained:
    """Return the same chain, where several factors of a product that are the same for all keys,
    such as scales of heads, are multiplied first; a constant stays outside."""

    def grouped(node: Expression) -> Expression:
        if isinstance(node, Read):
            return node
        found = factors(node)
        constants = [f for f in found if constant(f) is not None]
        of_rows = [f for f in found if f not in constants and not chained.reads_key(f)]
        of_keys = [f for f in found if f not in constants and chained.reads_key(f)]
        if len(of_rows) < 2 or not of_keys:
            return node.with_children(tuple(map(grouped, node.children)))
        each = (product(of_rows), product(map(grouped, of_keys)))
        return times(product(constants), Binary("*", *each))

    scalars = tuple(replace(r, element=grouped(r.element)) for r in chained.scalars)
    weighings = tuple(replace(w, weight=grouped(w.weight)) for w in chained.weighings)
    return replace(chained, scalars=scalars, weighings=weighings)
