"""The derivative of an expression in one of its reads, by the rules of sums, products, quotients
and chains. Conditions of selections and indices have no derivative: they choose, and jump.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tilewright.spaces.derivation.algebra import (
    ONE,
    ZERO,
    factors,
    minus,
    negated,
    number,
    over,
    plus,
    times,
)
from tilewright.spaces.derivation.gradients.slopes import slopes
from tilewright.spaces.derivation.gradients.totals import quotient
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.tree import Binary, Call, Expression, Negation, Read, Select


def partial(node: Expression, read: Read) -> Expression:
    """Return ``d node / d read``; :class:`InputError` if a function on the way has none."""
    if node == read:
        return ONE
    if read not in node.values():
        return ZERO
    match node:
        case Negation(inner):
            return negated(partial(inner, read))
        case Binary("+", left, right):
            return plus(partial(left, read), partial(right, read))
        case Binary("-", left, right):
            return minus(partial(left, read), partial(right, read))
        case Binary("*", left, right) if left == right:
            return times(times(number(2.0), partial(left, read)), right)
        case Binary("*", left, right):
            return plus(times(partial(left, read), right), times(left, partial(right, read)))
        case Binary("/", left, right):
            return _quotient(node, partial(left, read), partial(right, read))
        case Binary(operator):
            raise InputError(f"{operator} has no gradient: {node} jumps; allowed: + - * /")
        case Select(condition, then, otherwise):
            return selected(condition, partial(then, read), partial(otherwise, read))
        case Call(_, arguments):
            return _call(node, arguments, read)
    raise InputError(f"{node} has no gradient")


def _quotient(node: Binary, in_left: Expression, in_right: Expression) -> Expression:
    """Return the derivative of a quotient by its own value: ``(a' - (a / b) b') / b``."""
    above = over(in_left, node.right)
    return above if in_right == ZERO else minus(above, times(node, over(in_right, node.right)))


def _call(node: Call, arguments: tuple[Expression, ...], read: Read) -> Expression:
    """Return the derivative of a call, by the chain rule in each argument that has one."""
    inner = [partial(argument, read) for argument in arguments]
    if all(each == ZERO for each in inner):
        return ZERO
    terms = [times_chosen(own, each) for own, each in zip(slopes(node), inner, strict=True)]
    return _total(terms)


def times_chosen(choice: Expression, value: Expression) -> Expression:
    """Return a product, with the value inside where its other factor chooses 1 or 0."""
    match choice:
        case Select(condition, then, otherwise) if {then, otherwise} <= {ONE, ZERO}:
            return selected(condition, times(then, value), times(otherwise, value))
    return ZERO if value == ZERO else times(choice, value)


def selected(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    """Return a selection, or the value where both are one."""
    return then if then == otherwise else Select(condition, then, otherwise)


def _total(terms: list[Expression]) -> Expression:
    total = ZERO
    for term in terms:
        total = plus(total, term)
    return total


def folded(node: Expression, known: Mapping[Expression, Expression]) -> Expression:
    """Return an expression that reads stages where it would compute what they hold."""
    if node in known:
        return known[node]
    children = tuple(folded(child, known) for child in node.children)
    return node if children == node.children else node.with_children(children)


def with_products(node: Expression, known: Mapping[Expression, Expression]) -> Expression:
    """Return a product that reads stages which hold some of its factors' product."""
    found = list(factors(node))
    for body, read in known.items():
        own = list(factors(body))
        if len(own) > 1 and not Counter(own) - Counter(found):
            for factor in own:
                found.remove(factor)
            found.append(read)
    return quotient(found)
