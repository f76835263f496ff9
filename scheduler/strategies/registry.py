"""Register the search strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.scheduler.defaults import default_search
from tilewright.scheduler.strategies.annealing import AnnealingSearch
from tilewright.scheduler.strategies.exhaustive import ExhaustiveSearch
from tilewright.scheduler.strategies.genetic import GeneticSearch
from tilewright.scheduler.strategies.iterated_local import IteratedLocalSearch
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.search import Search
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.space import Space
from tilewright.spaces.validation.nearest import suggestion

EVOLUTIONARY = "evolutionary"
"""The one that is used if nobody says, and the only one that follows a model."""

Factory = Callable[[Space, int], Search]
"""Makes a search of a space with a seed."""

SEARCHES: Mapping[str, Factory] = {
    EVOLUTIONARY: default_search,
    "random": RandomSearch,
    "exhaustive": lambda space, seed: ExhaustiveSearch(space),
    "genetic": GeneticSearch,
    "annealing": AnnealingSearch,
    "iterated-local": IteratedLocalSearch,
}


def factory(name: str) -> Factory:
    """Return the factory of the search called ``name``. Raises :class:`InputError` if there is
    none."""
    if not isinstance(name, str) or name not in SEARCHES:
        near = suggestion(name, SEARCHES)
        raise InputError(f"unknown search {shown(name)}; {near}allowed: {', '.join(SEARCHES)}")
    return SEARCHES[name]


def check(name: str, model: object | None) -> None:
    """Raise :class:`InputError` for an unknown search, or one that does not follow ``model``."""
    factory(name)
    if model is not None and name != EVOLUTIONARY:
        raise InputError(f"search={name} follows no model; allowed with one: {EVOLUTIONARY}")
