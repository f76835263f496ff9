"""What two values of a reducer become, as CUDA C++ on one number at a time."""

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
    """C text of ``a`` and ``b`` as one value, NaN if one is."""
    return _JOINED[reducer].format(a, b)


def taken(reducer: str, state: str, factors: Sequence[str]) -> str:
    """C text of a state and one more element, a product of ``factors``; a sum takes it by a
    multiply-add."""
    if reducer == "sum" and len(factors) == 2:
        return f"tw::fused({', '.join(factors)}, {state})"
    return joined(reducer, state, " * ".join(factors))


PLACES = tuple(name for name, reducer in REDUCERS.items() if reducer.argument)
"""Reducers of a value and its place, which functions of these names with ``tw_`` before join."""
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
    """The functions that join values and their places, on ``real``: the first NaN before all, of
    equals the lower place."""
    return typed(_PLACE_HELPERS, real)


def typed(text: str, real: str) -> str:
    """C text in which ``T`` is the type ``real``."""
    return re.sub(r"\bT\b", real, text)
