"""Sequences that are gone through together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import TypeVar

T = TypeVar("T")


def in_turn(ranked: Iterable[Iterable[T | None]]) -> list[T]:
    """Return the first of each, the second of each, and so on; None is left out."""
    every = chain.from_iterable(zip_longest(*ranked))
    return [each for each in every if each is not None]
