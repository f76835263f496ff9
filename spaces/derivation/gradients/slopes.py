"""Derivatives of the functions of the language, by the value of the function where that is
shorter: a kernel then computes it once.

The formulas are those of Abramowitz and Stegun, Handbook of Mathematical Functions (1964), chapters
4 and 7; of gelu and silu the product rule on the definitions in Hendrycks and Gimpel (2016). Where
a function has a corner, the derivative is that of the side where its argument is less: 0 of
``relu`` at 0. Casts count as what they round (a straight-through estimate, as torch has it).
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi, sqrt

from tilewright.spaces.derivation.algebra import (
    ONE,
    ZERO,
    minus,
    negated,
    number,
    over,
    plus,
    times,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.tree import Call, Comparison, Expression, Select

FLAT = ("floor", "round")
"""Functions that are flat wherever they do not jump."""
CASTS = ("bfloat16", "float16", "float32")


def slopes(call: Call) -> tuple[Expression, ...]:
    """Return the derivative of a call in each of its arguments; :class:`InputError` if it has
    none."""
    function = call.function
    if function in CASTS:
        return (ONE,)
    if function in _ONE_ARGUMENT:
        (u,) = call.arguments
        return (_ONE_ARGUMENT[function](u, call),)
    if function in _TWO_ARGUMENTS:
        x, y = call.arguments
        return _TWO_ARGUMENTS[function](x, y, call)
    if function == "random":
        return (ZERO, ZERO, ZERO)
    if function in FLAT:
        problem = f"{function} has no gradient: it is flat wherever it does not jump"
        raise InputError(f"{problem}; allowed: operands that it does not read")
    known = ", ".join(sorted([*_ONE_ARGUMENT, *_TWO_ARGUMENTS]))
    raise InputError(f"{function} has no gradient; functions that have one: {known}")


def _call(function: str, *arguments: Expression) -> Expression:
    return Call(function, arguments)


def _square(u: Expression) -> Expression:
    return times(u, u)


def _step(u: Expression) -> Expression:
    return Select(Comparison(">", u, ZERO), ONE, ZERO)


def _sign(u: Expression) -> Expression:
    negative = Select(Comparison("<", u, ZERO), number(-1.0), ZERO)
    return Select(Comparison(">", u, ZERO), ONE, negative)


def _silu(u: Expression) -> Expression:
    s = _call("sigmoid", u)
    return times(s, plus(ONE, times(u, minus(ONE, s))))


def _gelu(u: Expression) -> Expression:
    """Return ``Phi(u) + u phi(u)``, Phi the normal distribution and phi its density."""
    distribution = times(number(0.5), plus(ONE, _call("erf", times(number(sqrt(0.5)), u))))
    density = times(number(1 / sqrt(2 * pi)), _call("exp", times(number(-0.5), _square(u))))
    return plus(distribution, times(u, density))


def _gelu_tanh(u: Expression) -> Expression:
    """Return the derivative of ``u sigmoid(2 v)``, v the polynomial inside the tanh."""
    scale = sqrt(2 / pi)
    inner = times(number(scale), plus(u, times(number(0.044715), times(u, _square(u)))))
    s = _call("sigmoid", times(number(2.0), inner))
    slope = times(number(2 * scale), plus(ONE, times(number(3 * 0.044715), _square(u))))
    return plus(s, times(times(u, slope), times(s, minus(ONE, s))))


Slope = Callable[[Expression, Call], Expression]
_ONE_ARGUMENT: dict[str, Slope] = {
    "exp": lambda u, own: own,
    "exp2": lambda u, own: times(number(log(2)), own),
    "expm1": lambda u, own: plus(own, ONE),
    "log": lambda u, own: over(ONE, u),
    "log1p": lambda u, own: over(ONE, plus(ONE, u)),
    "sqrt": lambda u, own: over(number(0.5), own),
    "rsqrt": lambda u, own: times(number(-0.5), times(own, _square(own))),
    "tanh": lambda u, own: minus(ONE, _square(own)),
    "sigmoid": lambda u, own: times(own, minus(ONE, own)),
    "erf": lambda u, own: times(number(2 / sqrt(pi)), _call("exp", negated(_square(u)))),
    "sin": lambda u, own: _call("cos", u),
    "cos": lambda u, own: negated(_call("sin", u)),
    "atan": lambda u, own: over(ONE, plus(ONE, _square(u))),
    "abs": lambda u, own: _sign(u),
    "relu": lambda u, own: _step(u),
    "silu": lambda u, own: _silu(u),
    "gelu": lambda u, own: _gelu(u),
    "gelu_tanh": lambda u, own: _gelu_tanh(u),
}


def _pow(x: Expression, y: Expression, own: Call) -> tuple[Expression, Expression]:
    """Return the slopes in base and exponent. That in the exponent is 0 where the base is 0: its
    limit for positive exponents."""
    in_base = times(y, _call("pow", x, minus(y, ONE)))
    in_exponent = Select(Comparison("==", x, ZERO), ZERO, times(own, _call("log", x)))
    return in_base, in_exponent


def _atan2(y: Expression, x: Expression, own: Call) -> tuple[Expression, Expression]:
    size = plus(_square(x), _square(y))
    return over(x, size), negated(over(y, size))


def _fmod(x: Expression, y: Expression, own: Call) -> tuple[Expression, Expression]:
    """The quotient, rounded towards 0, is constant wherever it does not jump."""
    return ONE, over(minus(own, x), y)


def _greater(x: Expression, y: Expression, own: Call) -> tuple[Expression, Expression]:
    first = Comparison(">" if own.function == "max" else "<", x, y)
    return Select(first, ONE, ZERO), Select(first, ZERO, ONE)


_TWO_ARGUMENTS: dict[str, Callable[[Expression, Expression, Call], tuple[Expression, ...]]] = {
    "pow": _pow,
    "atan2": _atan2,
    "fmod": _fmod,
    "max": _greater,
    "min": _greater,
}
