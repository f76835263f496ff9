"""Scalars beside a sum, written ``scale[]``: brackets around nothing.

A name alone is more often a vector whose index was forgotten, so it is refused. Descriptions of
workloads, as databases keep them, have scalars without brackets.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tilewright.spaces.errors import InputError, shown

_BRACKETED = re.compile(r"\b(?!x\b)([A-Za-z]\w*) *\[ *\](?! *\()")


def without_brackets(text: str) -> str:
    """Return an epilogue as descriptions have it."""
    return _BRACKETED.sub(r"\1", text)


def with_brackets(text: str, scalars: Collection[str]) -> str:
    """Return an epilogue as it is asked for, of a description's text."""
    return _named(scalars).sub(r"\1[]", text) if scalars else text


def check_scalars(text: str, scalars: Collection[str], axis: str) -> None:
    """Refuse a name without brackets among ``scalars``, which have no axes. ``axis`` is the one
    that vectors beside such a sum mostly have."""
    asked = set(_BRACKETED.findall(text))
    for name in scalars:
        if name not in asked and _named([name]).search(text):
            raise InputError(
                f"epilogue {shown(text)}: {name!r} has no index; write {name}[{axis}] for one "
                f"value for each {axis}, or {name}[] for a scalar"
            )


def _named(names: Collection[str]) -> re.Pattern[str]:
    """Say where one of the names stands, and not as a function or with an index."""
    return re.compile(rf"\b({'|'.join(map(re.escape, names))})\b(?! *[\[(])")
