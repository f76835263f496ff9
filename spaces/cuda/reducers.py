"""The operations of reducers as CUDA C++ on one number at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.spaces.language.functions import REDUCERS

_JOINED = {
    "sum": "{} + {}",
    "prod": "{} * {}",
    "max": "tw::max_nan({}, {})",
    "min": "tw::min_nan({}, {})",
}


def joined(reducer: str, a: str, b: str) -> str:
    """Return C text of ``a`` and ``b`` reduced to one value, NaN if one is."""
    return _JOINED[reducer].format(a, b)


def taken(reducer: str, state: str, factors: Sequence[str]) -> str:
    """Return C text of a state joined by one more element, a product of ``factors``.

    A sum takes it by a multiply-add.
    """
    if reducer == "sum" and len(factors) == 2:
        return f"tw::fused({', '.join(factors)}, {state})"
    return joined(reducer, state, " * ".join(factors))


PLACES = tuple(name for name, reducer in REDUCERS.items() if reducer.argument)
"""Reducers of a value and its place; functions with ``tw_`` before their names join these."""
NOWHERE = "2147483647"
"""The place of no element."""
_PLACE_HELPERS = """\
TW_INLINE void tw_argmax(T &value, int &place, T other, int at) {
  const bool better = other > value || (other != other && value == value);
  const bool same = other == value || (other != other && value != value);
  if (better || (same && at < place)) { value = other; place = at; }
}
TW_INLINE void tw_argmin(T &value, int &place, T other, int at) {
  const bool better = other < value || (other != other && value == value);
  const bool same = other == value || (other != other && value != value);
  if (better || (same && at < place)) { value = other; place = at; }
}
"""


def place_helpers(real: str) -> str:
    """Return the C functions that join values and their places, on the type ``real``.

    The first NaN wins over all numbers, and of equal values the lower place.
    """
    return typed(_PLACE_HELPERS, real)


def typed(text: str, real: str) -> str:
    """Return C text in which ``T`` is the type ``real``."""
    return re.sub(r"\bT\b", real, text)
