"""Tell whether a maximum may lag behind, as any number is a valid reference for exponentials.

Sums of ``exp(x - m)`` are corrected from one ``m`` to another by a factor. The final result is
often the same for every ``m``: weights over their sum, or ``m + log(sum)``. This is tested on
numbers, with other values in place of the maximum.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling
from tilewright.spaces.language.evaluation import Elementwise
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.tree import AxisValue, Expression, Negation, Read

_DRAWS = 16


def may_lag(chained: Chained) -> frozenset[str]:
    """Return the names of all maxima that any number may stand for."""
    return frozenset(r.name for r in chained.scalars if _is_free(chained, r))


def _is_free(chained: Chained, top: ChainReduction) -> bool:
    corrected = [r for r in chained.reductions if r.correction and _reads(r, top)]
    usual = all(
        isinstance(r.correction, Scaling) and r.correction.exponent == Negation(top.state)
        for r in corrected
    )
    if top.reducer != "max" or not corrected or not usual:
        return False
    draw = np.random.default_rng(0)
    states = {r.name: draw.uniform(0.5, 2, _DRAWS) for r in chained.reductions}
    shift = draw.uniform(-3, 3, _DRAWS)
    moved = states | {top.name: states[top.name] + shift}
    for r in corrected:
        assert isinstance(r.correction, Scaling)
        moved[r.name] = states[r.name] * FUNCTIONS[r.correction.function].reference(-shift)
    found, again = (_outputs(chained, each) for each in (states, moved))
    return all(np.allclose(a, b, rtol=1e-9) for a, b in zip(found, again, strict=True))


def _reads(r: ChainReduction, top: ChainReduction) -> bool:
    return any(read.name == top.name for read in r.element.reads)


def _outputs(chained: Chained, states: Mapping[str, np.ndarray]) -> list[Any]:
    """Return the outputs where reductions end with ``states``."""
    results = {r.name: _value(r.result, states) for r in chained.reductions}
    return [_value(output.value, results) for output in chained.outputs]


def _value(expression: Expression, known: Mapping[str, Any]) -> Any:
    """Return a number for a read, which differs from read to read."""

    def leaf(node: Expression) -> Any:
        if isinstance(node, Read) and node.name in known:
            return known[node.name]
        return _number(str(node)) if isinstance(node, Read | AxisValue) else None

    return expression.fold(Elementwise(), leaf)


@lru_cache(maxsize=256)
def _number(name: str) -> np.ndarray:
    return np.random.default_rng(list(name.encode())).uniform(0.5, 2, _DRAWS)
