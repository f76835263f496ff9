"""Moves a number that multiplies all scores to their left operand, read once for all keys.

A number above 1 stays: it could make terms infinite, of different signs, where their sum is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.spaces.derivation.algebra import constant, number, product
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.language.tree import Binary, Expression, Read


def with_scaled_scores(chained: Chained) -> Chained:
    """Return the same chain, where the number that all uses of the score multiply it by, if there
    is one, belongs to the factor of all scores."""
    bodies = [*(r.element for r in chained.scalars), *(w.weight for w in chained.weighings)]
    found = {scale for body in bodies for scale in _scales(body, chained.score)}
    scale = found.pop() if len(found) == 1 else None
    if not scale or abs(scale) > 1:
        return chained

    def scaled(node: Expression) -> Expression:
        if _scale(node, chained.score) is not None:
            return chained.score
        if isinstance(node, Read):
            return node
        return node.with_children(tuple(map(scaled, node.children)))

    scalars = (replace(r, element=scaled(r.element)) for r in chained.scalars)
    weighings = (replace(w, weight=scaled(w.weight)) for w in chained.weighings)
    factor = product((chained.factor, number(scale)))
    return with_scaled_scores(
        replace(chained, scalars=tuple(scalars), weighings=tuple(weighings), factor=factor)
    )


def _scales(node: Expression, score: Read) -> Iterator[float | None]:
    """Yield the factor that each use of the score multiplies it by; None for a use without one."""
    if node == score:
        yield None
    elif (scale := _scale(node, score)) is not None:
        yield scale
    elif not isinstance(node, Read):
        for child in node.children:
            yield from _scales(child, score)


def _scale(node: Expression, score: Read) -> float | None:
    """Return the number of a product with the score; None of all else."""
    match node:
        case Binary("*", left, right) if left == score:
            return constant(right)
        case Binary("*", left, right) if right == score:
            return constant(left)
        case Binary("/", left, right) if left == score and (divisor := constant(right)):
            return 1 / divisor
    return None
