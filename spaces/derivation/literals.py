"""Expressions with what numbers decide worked out: sums, products, comparisons and selections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from tilewright.spaces.derivation.algebra import (
    ZERO,
    constant,
    minus,
    negated,
    number,
    over,
    plus,
    product,
    times,
)
from tilewright.spaces.language.evaluation import OPERATIONS
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Comparison,
    Expression,
    Negation,
    Number,
    Select,
)


def worked_out(node: Expression) -> Expression:
    """Return an equal expression without operations on numbers; what is multiplied by 0 is 0."""
    children = tuple(map(worked_out, node.children))
    return combined(node if children == node.children else node.with_children(children))


def combined(node: Expression) -> Expression:
    """Return a node whose children are worked out, worked out itself."""
    match node:
        case Negation(inner):
            return negated(inner)
        case Binary("+", left, right):
            return plus(left, right)
        case Binary("-", left, right):
            return minus(left, right)
        case Binary("*", left, right):
            return times(left, right)
        case Binary(operator, left, right):
            return _divided(node, operator, left, right)
        case Select(Comparison() as condition, then, otherwise):
            holds = decided(condition)
            return node if holds is None else then if holds else otherwise
    return node


def _divided(node: Expression, operator: str, left: Expression, right: Expression) -> Expression:
    """Return a quotient or a remainder; one by zero stays as it is."""
    a, b = constant(left), constant(right)
    if a is not None and b:
        return number(float(OPERATIONS[operator](a, b)))
    return over(left, right) if operator == "/" and b != 0 else node


def decided(condition: Comparison) -> bool | None:
    """Tell whether a comparison of numbers holds; None for one of anything else."""
    left, right = constant(condition.left), constant(condition.right)
    if left is None or right is None:
        return None
    return bool(OPERATIONS[condition.operator](left, right))


def is_place(condition: Expression) -> bool:
    """Tell whether a condition holds at one place along an axis: ``k == 2``."""
    match condition:
        case Comparison("==", AxisValue(), Number()):
            return True
    return False


def multiplied(node: Expression) -> Iterator[Expression]:
    """Yield the factors of a product from left to right, a sign as a number; no divisors."""
    match node:
        case Binary("*", left, right):
            yield from multiplied(left)
            yield from multiplied(right)
        case Negation(inner):
            yield number(-1.0)
            yield from multiplied(inner)
        case _:
            yield node


def total(terms: Iterable[Expression]) -> Expression:
    """Return a sum without zeros, in which equal terms are one, as a tree of little depth."""
    multiples: dict[tuple[Expression, ...], float] = {}
    for term in terms:
        found = tuple(multiplied(term))
        scale = prod(c for c in map(constant, found) if c is not None)
        rest = tuple(factor for factor in found if constant(factor) is None)
        multiples[rest] = multiples.get(rest, 0.0) + scale
    level = [_multiple(scale, rest) for rest, scale in multiples.items() if scale]
    while len(level) > 1:
        pairs = [plus(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(level) - len(level) % 2 :]
    return level[0] if level else ZERO


def _multiple(scale: float, factors: Iterable[Expression]) -> Expression:
    made = product([number(abs(scale)), *factors])
    return negated(made) if scale < 0 else made
