"""Parameters of a function, given as values or as text."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.nearest import suggestion


@cache
def parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """Map names to parameters; one with a default may be left out."""
    return inspect.signature(function, eval_str=True).parameters


def values(name: str, function: Callable[..., object], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the values ``given`` to a function whose parameters are integers, numbers or text.
    Raises :class:`InputError` for one that is unknown, missing, or no number where it must be one.
    Messages call the function by ``name``.
    """
    known = parameters(function)
    for parameter in given:
        if parameter not in known:
            allowed = ", ".join(known)
            words = f"{suggestion(parameter, known)}allowed: {allowed}"
            raise InputError(f"{name} has no parameter {shown(parameter)}; {words}")
    needed = [p for p, found in known.items() if found.default is inspect.Parameter.empty]
    missing = [parameter for parameter in needed if parameter not in given]
    if missing:
        raise InputError(f"{name} needs {', '.join(needed)}; missing: {', '.join(missing)}")
    return {p: _value(p, value, known[p].annotation) for p, value in given.items()}


def _value(name: str, value: Any, kind: type) -> Any:
    """Return the value as the parameter's annotation wants it."""
    if kind is str:
        if isinstance(value, str):
            return value
        raise InputError(f"{name}={shown(value)} is not allowed; allowed: text")
    try:
        if isinstance(value, bool):
            raise ValueError
        if kind is int and not isinstance(value, str):
            return operator.index(value)  # int() would cut off fractions
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        allowed = "a whole number" if kind is int else "a number"
        raise InputError(f"{name}={shown(value)} is not {allowed}") from None
