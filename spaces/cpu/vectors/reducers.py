"""The C of reducers on vectors: what no elements give, and two values as one."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.derivation.chains.chain_reduction import Scaling, Series
from tilewright.spaces.derivation.scopes import Scope, combined, scaled, states_of
from tilewright.spaces.language.tree import Binary, Expression

IDENTITIES = {
    "sum": "0.0f",
    "prod": "1.0f",
    "max": "-__builtin_inff()",
    "min": "__builtin_inff()",
}
"""What no elements give, as a number."""
EXTREMES = {"argmax": "max", "argmin": "min"}
"""The reducers whose values those that find places find."""
BARE = {"max": "tw_greater", "min": "tw_lesser"}
"""Functions of two values that are the extreme of both unless one is NaN."""
_OPERATORS = {"sum": "+", "prod": "*"}


def identity(reducer: str) -> str:
    """A vector of what no elements give."""
    return f"tw_set({IDENTITIES[EXTREMES.get(reducer, reducer)]})"


def joined(reducer: str, a: str, b: str) -> str:
    """Two values reduced to one."""
    operator = _OPERATORS.get(reducer)
    return f"{a} {operator} {b}" if operator else f"tw_{EXTREMES.get(reducer, reducer)}({a}, {b})"


def joined_operand(reducer: str, a: str, b: str) -> str:
    """Two values reduced to one, to stand within another expression."""
    text = joined(reducer, a, b)
    return f"({text})" if reducer in _OPERATORS else text


def factors(reducer: str, element: Expression) -> tuple[Expression, Expression] | None:
    """The factors of elements that are added without being rounded first; None if they are not
    products, or not added."""
    match element:
        case Binary("*", left, right) if reducer == "sum":
            return left, right
    return None


def sum_of_products(scopes: Sequence[Scope], left: Expression, right: Expression) -> str:
    """The sum of a product in several scopes, to stand within another expression."""
    pairs = [(scope.text(left), scope.text(right)) for scope in scopes]
    texts = [f"{a} * {b}" for a, b in pairs[::2]]
    for number, (a, b) in enumerate(pairs[1::2]):
        texts[number] = f"tw_fma({a}, {b}, {texts[number]})"
    return f"({combined(texts, lambda a, b: f'({a} + {b})')})"


def begun(reducer: str, state: str) -> str:
    """A state while its row has not ended. An extreme of nothing but infinities is zero: elements
    of its part are zero by that, and neither they nor corrections become NaN before the end."""
    return f"tw_begun_{reducer}({state})" if reducer in BARE else state


def factor(correction: Scaling, new: Scope, old: Scope) -> str:
    """What a state is multiplied by where results move from ``old`` to ``new``: finite, for a state
    of zero stays zero whatever it began with."""
    states = states_of(correction.exponent, new)
    return scaled_by(correction, new, f"{new.text(states)} - {old.text(states)}")


def scaled_by(correction: Scaling, new: Scope, moved: str) -> str:
    """The factor where the states of the exponent ``moved`` so far."""
    distance = scaled(correction.exponent, new, moved)
    return f"tw_lesser(tw_set(TW_LARGEST), tw_{correction.function}({distance}))"


def ended(correction: Scaling | Series | None, results: Scope) -> str:
    """What is added to a state once its row has ended: zero, or NaN where the final ``results`` are
    infinite, for what was zero of parts is not of the whole row."""
    if not isinstance(correction, Scaling):
        return ""
    states = results.text(states_of(correction.exponent, results))
    return f" + ({states} - {states})"
