"""The growth of an exponent from one position to the next, where that cancels nothing.

-g[h] * t   grows by   -g[h]        l[h, t] = sum[s: s <= t](a[h, s])   grows by   a[h, t]

Other parts of an exponent, such as elements of arrays, stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from tilewright.spaces.derivation.algebra import ONE, ZERO, minus, negated, over, plus, times
from tilewright.spaces.language.prefixes import Prefix, prefix_of
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Negation, Read


@dataclass(frozen=True)
class Parts:
    """An exponent as a sum of the ``growing`` parts and the ``rest``."""

    growing: tuple[Expression, ...]
    rest: Expression

    @property
    def negated(self) -> Parts:
        """Minus the exponent."""
        return Parts(tuple(map(negated, self.growing)), negated(self.rest))


def parts_of(program: Program, prefix: Prefix, node: Expression) -> Parts:
    """Return an exponent as parts whose growth is known, and others."""
    match node:
        case Binary("+" | "-" as operator, left, right):
            first, second = (parts_of(program, prefix, side) for side in (left, right))
            joined = plus if operator == "+" else minus
            other = second if operator == "+" else second.negated
            return Parts((*first.growing, *other.growing), joined(first.rest, second.rest))
        case Negation(inner):
            return parts_of(program, prefix, inner).negated
    is_growing = growth_of(program, prefix, node) not in (None, ZERO)
    return Parts((node,), ZERO) if is_growing else Parts((), node)


def added_up(*parts: Expression) -> Expression:
    """Return a sum without parts of which it has the opposite, too."""
    left: list[Expression] = []
    for part in parts:
        if negated(part) in left:
            left.remove(negated(part))
        else:
            left.append(part)
    return reduce(plus, left, ZERO)


def growth_of(program: Program, prefix: Prefix, node: Expression) -> Expression | None:
    """Return how much an expression grows from the position before, along the axis ``row`` of the
    ``prefix`` and the other way if it is backwards; None if that is a difference of its values."""

    def grown(node: Expression) -> Expression | None:
        return growth_of(program, prefix, node)

    if prefix.row not in node.axes:
        return ZERO
    match node:
        case AxisValue():
            return negated(ONE) if prefix.backwards else ONE
        case Negation(inner) if (growth := grown(inner)) is not None:
            return negated(growth)
        case Binary("+" | "-" as operator, left, right):
            first, second = grown(left), grown(right)
            if first is None or second is None:
                return None
            return plus(first, second) if operator == "+" else minus(first, second)
        case Binary("*", left, right) if prefix.row not in left.axes:
            growth = grown(right)
            return None if growth is None else times(left, growth)
        case Binary("*" | "/" as operator, left, right) if prefix.row not in right.axes:
            growth = grown(left)
            if growth is None:
                return None
            return times(growth, right) if operator == "*" else over(growth, right)
        case Read():
            return _last_term(program, prefix, node)
    return None


def _last_term(program: Program, prefix: Prefix, read: Read) -> Expression | None:
    """Return the term that a running sum has taken in last; None of other reads, and of sums that
    have no term for each position or that differ from position to position otherwise."""
    stage = program.stage.get(read.name)
    found = prefix_of(program, stage) if stage else None
    if (
        stage is None
        or found is None
        or found.reducer != "sum"
        or found.exclusive
        or found.backwards != prefix.backwards
    ):
        return None
    if program.extent[found.term] < program.extent[prefix.row]:
        return None
    places = dict(zip(stage.axes, read.indices, strict=True))
    own = places.pop(found.row)
    if own != AxisValue(prefix.row) or any(prefix.row in at.axes for at in places.values()):
        return None
    return stage.body.at({**places, found.row: own, found.term: own})
