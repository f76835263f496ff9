"""The functions, reducers and casts that a program may use: how many arguments each function takes,
what it means, and how far generated code may be off.

The meaning is in float64, by NumPy. Generated code computes the same in float32, see
``spaces.cpu.vectors.vector_math`` and ``spaces.cuda.scalar_math``, whose tests hold every function
to its ``error``. NaN comes out wherever NaN goes in, but ``pow(x, 0)`` and ``pow(1, y)`` are 1; at
minus infinity ``gelu``, ``gelu_tanh`` and ``silu`` give their limit, zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import numpy as np

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.philox import random_numbers
from tilewright.spaces.language.tabulated import tabulated_gelu


@dataclass(frozen=True)
class Function:
    """One callable name; ``reference`` maps ``arity`` float64 arrays to one.

    ``error`` is the (relative, absolute) bound on what float32 code may be off; the two add up.
    Between the points ``turning`` and beyond them the function is monotone; with a ``period``, the
    points come again after each. ``quick``, if there is one, takes less time than ``reference``,
    and is off by a thousandth of ``error`` at most.

    ``library`` names the function of C's library that computes the same in double; the one in
    float has an f behind its name. Where it is given, no kind of code needs a text of its own.
    Processors have an instruction for ``plain`` functions. ``whole`` ones give whole numbers of
    whole numbers.
    """

    name: str
    arity: int
    reference: Callable[..., np.ndarray]
    error: tuple[float, float] = (0.0, 0.0)
    turning: tuple[float, ...] = ()
    quick: Callable[..., np.ndarray] | None = None
    period: float = 0.0
    library: str = ""
    plain: bool = False
    whole: bool = False


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return np.asarray(erf(x))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _gelu(x: np.ndarray) -> np.ndarray:
    """Return ``x * Phi(x)``, Phi the normal distribution (Hendrycks and Gimpel 2016, section 2)."""
    from scipy.special import ndtr

    return np.asarray(np.maximum(x, -40.0) * ndtr(x))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    """Return the same paper's approximation by tanh, by ``1 + tanh(u) = 2 sigmoid(2 u)``."""
    bounded = np.maximum(x, -40.0)
    inner = np.sqrt(2.0 / np.pi) * (bounded + 0.044715 * bounded**3)
    return bounded * _sigmoid(2.0 * inner)


def _silu(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(x, -800.0) * _sigmoid(x))


def _in_float64(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return the function on whole numbers too, as float64: NumPy has no negative powers of
    integers."""

    def converted(*arguments: np.ndarray) -> np.ndarray:
        return function(*(np.asarray(each, np.float64) for each in arguments))

    return converted


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return powers as C has them: NumPy takes the square root for one exponent of a half, which
    minus infinity does not have."""
    return np.where((x == -np.inf) & (y == 0.5), np.inf, np.power(x, y))


def _floor(x: np.ndarray) -> np.ndarray:
    """Round down; whole numbers stay what they are, beyond 2**53 too."""
    return x if np.asarray(x).dtype.kind == "i" else np.floor(x)


def _rounded_to(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Rounding to the values of a dtype. By way of float32, as kernels do."""

    def rounded(x: np.ndarray) -> np.ndarray:
        return np.asarray(x).astype(np.float32).astype(dtype(name).numpy).astype(np.float64)

    return rounded


def _periodic(
    name: str, reference: Callable[..., np.ndarray], turning: tuple[float, ...]
) -> Function:
    error = (4e-7, 2e-45)
    return Function(name, 1, _in_float64(reference), error, turning, period=2 * pi, library=name)


FUNCTIONS = {
    function.name: function
    for function in (
        Function("exp", 1, np.exp, (3e-7, 2e-38)),
        Function("tanh", 1, np.tanh, (4e-7, 2e-45)),
        Function("erf", 1, _erf, (4e-7, 2e-45)),
        Function("sigmoid", 1, _sigmoid, (4e-7, 2e-38)),
        Function("relu", 1, lambda x: np.maximum(x, 0), plain=True, whole=True),
        Function("gelu", 1, _gelu, (1.2e-7, 2.4e-7), (-0.7517915246935644,), tabulated_gelu),
        Function("gelu_tanh", 1, _gelu_tanh, (1.2e-7, 2.4e-7), (-0.7524614220710163,)),
        Function("silu", 1, _silu, (4e-7, 2e-36), (-1.2784645427610737,)),
        Function("min", 2, np.minimum, plain=True, whole=True),
        Function("max", 2, np.maximum, plain=True, whole=True),
        Function("sqrt", 1, np.sqrt, (6e-8, 0.0)),
        Function("rsqrt", 1, lambda x: 1.0 / np.sqrt(x), (3e-7, 0.0)),
        Function("abs", 1, np.abs, turning=(0.0,), plain=True, whole=True),
        *(
            Function(name, 1, _rounded_to(name), plain=True)
            for name in ("bfloat16", "float16", "float32")
        ),
        Function("log", 1, np.log, (4e-7, 4e-7)),
        Function("exp2", 1, np.exp2, (3e-7, 2e-38)),
        Function("floor", 1, _floor, plain=True, whole=True),
        Function("round", 1, _in_float64(np.rint), library="rint", plain=True),
        _periodic("sin", np.sin, (-pi / 2, pi / 2)),
        _periodic("cos", np.cos, (0.0, pi)),
        Function("pow", 2, _in_float64(_power), (8e-7, 2e-38), library="pow"),
        Function("log1p", 1, _in_float64(np.log1p), (4e-7, 2e-45), library="log1p"),
        Function("expm1", 1, _in_float64(np.expm1), (4e-7, 2e-45), library="expm1"),
        Function("atan", 1, _in_float64(np.arctan), (4e-7, 2e-45), library="atan"),
        Function("atan2", 2, _in_float64(np.arctan2), (6e-7, 2e-38), library="atan2"),
        Function("fmod", 2, _in_float64(np.fmod), library="fmod"),
        Function("random", 3, random_numbers),
    )
}
"""All functions by name; a cast is the function that is called like the dtype."""


def of_library() -> list[Function]:
    """Return the functions that C's library has."""
    return [function for function in FUNCTIONS.values() if function.library]


def by_library(function: Function, kind: str, name: str, called: str) -> str:
    """C text of ``name``, a function of numbers of a ``kind`` that calls C's library."""
    names = ("x", "y")[: function.arity]
    given = ", ".join(f"{kind} {each}" for each in names)
    return f"{kind} {name}({given}) {{ return {called}({', '.join(names)}); }}\n"


@dataclass(frozen=True)
class Reducer:
    """A function that reduces the values along some axes to one value.

    ``combine`` joins two values, and ``identity`` is the result of no values. An ``argument``
    reducer gives the place of the value that ``combine`` would give: the index along the axes, the
    last the fastest, and the lowest among equals.
    """

    name: str
    combine: Callable[..., np.ndarray]
    identity: float
    argument: bool = False


REDUCERS = {
    reducer.name: reducer
    for reducer in (
        Reducer("sum", np.add, 0.0),
        Reducer("prod", np.multiply, 1.0),
        Reducer("max", np.maximum, -np.inf),
        Reducer("min", np.minimum, np.inf),
        Reducer("argmax", np.maximum, -np.inf, argument=True),
        Reducer("argmin", np.minimum, np.inf, argument=True),
    )
}


def neutral(reducer: Reducer, kind: np.dtype) -> float:
    """Return what no values give in a dtype, or its least or greatest number instead."""
    if kind.kind == "i" and not np.isfinite(reducer.identity):
        limits = np.iinfo(kind)
        return limits.min if reducer.identity < 0 else limits.max
    return kind.type(reducer.identity)
