"""Suggest the name that a misspelt one probably stands for."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.7  # of names that differ by a letter, or by one of four letters and its neighbour


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the known name that ``name`` resembles most, whatever its case; empty if none does."""
    if not isinstance(name, str):
        return ""
    lower = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), lower, 1, ALIKE)
    return lower[found[0]] if found else ""


def suggestion(name: object, known: Iterable[str]) -> str:
    """``did you mean NAME? ``, or an empty text where no name is near; for an error's sentence."""
    near = nearest(name, known)
    return f"did you mean {near}? " if near else ""
