"""Weights that are rounded to float8 are scaled up into its range, at no cost.

Such a weight is a power, and the logarithm of the scale
(:data:`~spaces.derivation.rounding.reductions.RAISED`) is added to its exponent, once for each row.
Whatever else reads the power multiplies it by the inverse, exactly; sums do so at the end.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright.spaces.cuda.chains.scopes import POWERS
from tilewright.spaces.derivation.algebra import number, plus, times
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.rounding.reductions import RAISED
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Call, Expression, Read


def raised(chained: Chained) -> Chained:
    """Return the program with its one weight, a power, scaled up by ``RAISED``."""
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
    """Print how ``count`` sums of raised weights are scaled back."""
    return CUDA.loop("e", count, f"sums[e] *= {1 / RAISED!r}f;", unroll=True)
