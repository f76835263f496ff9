"""The searches that there are, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from costmodel.interfaces import CostModel
from scheduler.defaults import default_search
from scheduler.exhaustive import ExhaustiveSearch
from scheduler.random_search import RandomSearch
from scheduler.search import Search
from scheduler.transfer import Transfer
from spaces.errors import InputError, shown
from spaces.space import Space

DEFAULT = "evolutionary"


class Factory(Protocol):
    """Makes a search of a space. What is ``known`` of other shapes, and a ``model``, lead those
    that follow a model."""

    def __call__(
        self, space: Space, seed: int, known: Transfer | None = None, model: CostModel | None = None
    ) -> Search:
        """A fresh search."""
        ...


def _blind(make: Callable[[Space, int], Search]) -> Factory:
    """The factory of a search that follows no model."""

    def factory(
        space: Space, seed: int, known: Transfer | None = None, model: CostModel | None = None
    ) -> Search:
        return make(space, seed)

    return factory


SEARCHES: dict[str, Factory] = {
    DEFAULT: default_search,
    "random": _blind(RandomSearch),
    "exhaustive": _blind(lambda space, seed: ExhaustiveSearch(space)),
}


def factory(name: str) -> Factory:
    """What makes the search called ``name``; :class:`InputError` if there is none."""
    if name not in SEARCHES:
        raise InputError(f"unknown search {shown(name)}; allowed: {', '.join(SEARCHES)}")
    return SEARCHES[name]
