"""Make the search of a workload from its name, with what the database knows of its relatives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.costmodel.interfaces import CostModel
from tilewright.scheduler.defaults import default_search
from tilewright.scheduler.opening import as_model
from tilewright.scheduler.strategies.registry import EVOLUTIONARY, check, factory
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.tuning.transfer import transfer
from tilewright.spaces.space import Space

if TYPE_CHECKING:
    from tilewright.measure.database import Database


def new_search(
    space: Space,
    database: Database,
    strategy: str = EVOLUTIONARY,
    seed: int = 0,
    model: CostModel | str | Path | None = None,
) -> Search:
    """Return the search called ``strategy``; evolution begins with what is known of other shapes,
    and under ``model`` if one is given. :class:`InputError` if there is no such search."""
    check(strategy, model)
    if strategy != EVOLUTIONARY:
        return factory(strategy)(space, seed)
    prior = None if model is None else as_model(model)
    return default_search(space, seed, transfer(space, database), prior)
