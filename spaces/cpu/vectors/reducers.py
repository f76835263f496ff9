"""The C of reducers on vectors: their identities, and two values reduced to one."""

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
"""The result of a reduction of no elements, as a number in C."""
EXTREMES = {"argmax": "max", "argmin": "min"}
"""The reducers whose best value the reducers of places find."""
BARE = {"max": "tw_greater", "min": "tw_lesser"}
"""C functions of two values that give the extreme of both, unless one is NaN."""
_OPERATORS = {"sum": "+", "prod": "*"}


def identity(reducer: str) -> str:
    """Return a vector of the result of a reduction of no elements."""
    return f"tw_set({IDENTITIES[EXTREMES.get(reducer, reducer)]})"


def joined(reducer: str, a: str, b: str) -> str:
    """Return two values reduced to one."""
    operator = _OPERATORS.get(reducer)
    return f"{a} {operator} {b}" if operator else f"tw_{EXTREMES.get(reducer, reducer)}({a}, {b})"


def taken(reducer: str, state: str, element: str) -> str:
    """Return the statement by which a state takes in an element."""
    operator = _OPERATORS.get(reducer)
    return (
        f"{state} {operator}= {element};"
        if operator
        else f"{state} = {joined(reducer, state, element)};"
    )


def joined_operand(reducer: str, a: str, b: str) -> str:
    """Return two values reduced to one, in parentheses if another expression around them needs
    these."""
    text = joined(reducer, a, b)
    return f"({text})" if reducer in _OPERATORS else text


def factors(reducer: str, element: Expression) -> tuple[Expression, Expression] | None:
    """Return the factors of elements that are summed up without being rounded first; None if they
    are no products, or are not summed."""
    match element:
        case Binary("*", left, right) if reducer == "sum":
            return left, right
    return None


def sum_of_products(scopes: Sequence[Scope], left: Expression, right: Expression) -> str:
    """Return the sum of a product in several scopes, in parentheses."""
    pairs = [(scope.text(left), scope.text(right)) for scope in scopes]
    texts = [f"{a} * {b}" for a, b in pairs[::2]]
    for number, (a, b) in enumerate(pairs[1::2]):
        texts[number] = f"tw_fma({a}, {b}, {texts[number]})"
    return f"({combined(texts, lambda a, b: f'({a} + {b})')})"


def begun(reducer: str, state: str) -> str:
    """Return a state while its row has not ended, where zero stands for the extreme of nothing but
    infinities: elements of its part are zero then, and nothing becomes NaN before the end."""
    return f"tw_begun_{reducer}({state})" if reducer in BARE else state


def factor(correction: Scaling, new: Scope, old: Scope) -> str:
    """Return the factor of a state when results move from ``old`` to ``new``. It is finite, for a
    state of zero stays zero whatever it began with."""
    states = states_of(correction.exponent, new)
    return scaled_by(correction, new, f"{new.text(states)} - {old.text(states)}")


def scaled_by(correction: Scaling, new: Scope, moved: str) -> str:
    """Return the factor for states of the exponent that have ``moved`` so far."""
    distance = scaled(correction.exponent, new, moved)
    return f"tw_lesser(tw_set(TW_LARGEST), tw_{correction.function}({distance}))"


def ended(correction: Scaling | Series | None, results: Scope) -> str:
    """Return the C text that is added to a state once its row has ended: zero, or NaN if the final
    ``results`` are infinite, for what was taken as zero in parts is none in the whole row."""
    if not isinstance(correction, Scaling):
        return ""
    states = results.text(states_of(correction.exponent, results))
    return f" + ({states} - {states})"
