"""Hide a key: choose a score that makes it add nothing to any reduction.

Scores of minus infinity make exponentials zero and no maximum larger. So in a tile that not all
rows see, the scores of hidden keys are replaced, and no later code tests again.
"""

from __future__ import annotations

from math import inf

from tilewright.spaces.derivation.algebra import constant
from tilewright.spaces.derivation.chained.levels import Levels
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.language.tree import Binary, Call, Expression, Negation, Read

NOTHING = {"sum": 0.0, "max": -inf, "min": inf}
"""The identity of each reducer."""


def masked_value(chained: Chained) -> Expression | None:
    """Find the value of a key that masks the key where it is minus infinity, since all others are
    computed from it: the element of a maximum, without positive multiples, or the score. None if
    there is no such value. ``chained`` has unscaled scores."""
    kept = next((r.element for r in chained.scalars if r.reducer == "max"), chained.score)
    found = _without_multiples(kept)
    levels = Levels(chained)
    elements = [(r.element, NOTHING.get(r.reducer)) for r in chained.scalars]
    elements += [(weight, 0.0) for weight in levels.weights]
    hides = all(
        nothing is not None and _limit(body, found, chained) == nothing
        for body, nothing in elements
    )
    return found if hides and chained.reads_key(found) else None


def _without_multiples(element: Expression) -> Expression:
    match element:
        case Binary("*" | "/", inner, by) if (constant(by) or 0) > 0:
            return _without_multiples(inner)
        case Binary("*", by, inner) if (constant(by) or 0) > 0:
            return _without_multiples(inner)
    return element


def _limit(node: Expression, hidden: Expression, chained: Chained) -> float | None:
    """Return the value where ``hidden`` is minus infinity: 0 or infinite; 1 stands for any number
    that is the same for all keys and finite; None if it is not known. What else is read may be
    infinite or NaN: of a key, for that is hidden, too, and of a row that sees no key."""
    if node == hidden:
        return -inf
    if isinstance(node, Read):
        return 1.0 if any(r.name == node.name for r in chained.reductions) else None
    limits = [_limit(child, hidden, chained) for child in node.children]
    if None in limits:
        return None
    if all(limit == 1.0 for limit in limits):
        return 1.0
    match node:
        case Negation():
            return -limits[0]  # type: ignore[operator]
        case Call("exp" | "exp2" | "sigmoid"):
            return 0.0 if limits == [-inf] else None
        case Binary(operator, left, right):
            return _of_both(operator, limits, constant(left), constant(right))
    return None


def _of_both(
    operator: str, limits: list[float | None], left: float | None, right: float | None
) -> float | None:
    first, second = limits
    if operator == "-" and second is not None and second != 1.0:
        operator, second = "+", -second
    infinite = next((limit for limit in (first, second) if limit in (inf, -inf)), None)
    if operator in "+-":
        return infinite if 1.0 in (first, second) else None
    if 0.0 in (first, second) and infinite is None and not (operator == "/" and second == 0.0):
        return 0.0
    by = right if first == infinite else left
    if infinite is None or not by or (operator == "/" and second == infinite):
        return None
    return infinite if by > 0 else -infinite
