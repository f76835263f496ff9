"""Weights that are rounded to float8, raised into its range
(:data:`~spaces.derivation.rounding.reductions.RAISED`), at no cost.

Such a weight is a power, and what raises it is added to the exponent, which each row does once.
What else reads the power multiplies it by the inverse, exactly; a sum does so as it adds.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright.spaces.cuda.chains.scopes import POWERS
from tilewright.spaces.derivation.algebra import number, plus, times
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.rounding.reductions import RAISED
from tilewright.spaces.language.tree import Call, Expression, Read


def raised(chained: Chained) -> Chained:
    """The same with its one weight raised, the exponential of something."""
    (weighing,) = chained.weighings
    plain = weighing.weight
    assert isinstance(plain, Call)
    (exponent,) = plain.arguments
    added = number(math.log2(RAISED) / POWERS[plain.function])
    weight = Call(plain.function, (plus(exponent, added),))
    lowered = times(number(1 / RAISED), weight)

    def by_weight(node: Expression) -> Expression:
        if node == plain:
            return lowered
        if isinstance(node, Read):
            return node
        return node.with_children(tuple(map(by_weight, node.children)))

    scalars = tuple(replace(r, element=by_weight(r.element)) for r in chained.scalars)
    return replace(chained, scalars=scalars, weighings=(replace(weighing, weight=weight),))


def lowered_sums(count: int) -> list[str]:
    """C lines that bring so many sums of raised weights to their size."""
    return [
        "#pragma unroll",
        f"for (int e = 0; e < {count}; e++) sums[e] *= {1 / RAISED!r}f;",
    ]
