"""Book the wall time of a run on accounts: search, lowering, database, waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


class Ledger:
    """Books the wall time of a run on named accounts, in seconds.

    ``busy`` tells whether candidates are built or run meanwhile.
    """

    def __init__(
        self, began: float | None = None, busy: Callable[[], bool] = lambda: False
    ) -> None:
        now = time.monotonic()
        self._start = now if began is None else began
        self._busy = busy
        self.before = now - self._start
        """Seconds of the run that had passed when the ledger was opened."""
        self._spent: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._start

    def spent(self, name: str) -> float:
        """Return the seconds on account ``name``."""
        return self._spent.get(name, 0.0)

    @contextmanager
    def on(self, *names: str) -> Iterator[None]:
        """Book the time of the block on the accounts ``names``."""
        start = time.monotonic()
        try:
            yield
        finally:
            for name in names:
                self._spent[name] = self.spent(name) + time.monotonic() - start

    def work(self, name: str) -> AbstractContextManager[None]:
        """Book own work; also as ``idle`` if no candidate is built or run meanwhile."""
        return self.on(name) if self._busy() else self.on(name, "idle")
