"""Set up a run that a Python program starts: check how it searches, open what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.interfaces import Executor
from tilewright.measure.tables.retries import waiting
from tilewright.scheduler.defaults import local_executor
from tilewright.scheduler.opening import as_model, opened
from tilewright.scheduler.strategies.registry import check
from tilewright.scheduler.watching import watching
from tilewright.spaces.numerics.mode import Numerics, as_numerics
from tilewright.spaces.schedule import LARGEST
from tilewright.spaces.validation.checks import whole

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.scheduler.tuning.events import OnEvent
    from tilewright.spaces.target import Target


def search_options(
    search: str, seed: int, model: CostModel | str | Path | None, numerics: Numerics | str
) -> dict[str, Any]:
    """Return the arguments of a tuner that say how it searches; :class:`InputError` for bad
    ones."""
    seed = whole("seed", seed, 0, LARGEST)
    check(search, model)
    mode = as_numerics(numerics)
    prior = None if model is None else as_model(model)
    return {"strategy": search, "seed": seed, "model": prior, "numerics": mode}


@dataclass(frozen=True)
class Opened:
    """The parts that a run needs, open until it ends; ``tell`` shows an event of it."""

    executor: Executor
    database: Database
    tell: OnEvent


@contextmanager
def set_up(
    target: Target,
    database: Database | str | Path,
    executor: Executor | None,
    progress: bool,
    until: float,
) -> Iterator[Opened]:
    """Open the database, a display if ``progress`` is asked for, and an executor of this machine if
    none is given; the database is waited for until then (by ``time.monotonic``)."""
    with ExitStack() as stack:
        stack.enter_context(waiting(until))
        there = executor or stack.enter_context(closing(local_executor(target)))
        known = stack.enter_context(opened(database))
        yield Opened(there, known, stack.enter_context(watching(progress)).tell)
