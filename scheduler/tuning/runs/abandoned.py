"""Runs whose workers are gone: they say so in a line, and end soon."""

from __future__ import annotations

import warnings
from collections.abc import Collection

from tilewright.measure.interfaces import Executor
from tilewright.spaces.target import Target

TOLD_SECONDS = 3.0
"""Time after which it is said: most workers that end are replaced by then."""
PATIENCE_SECONDS = 30.0
"""Time after which nobody is waited for any more."""


class Abandoned:
    """Notes for how long an executor has had no workers for any of the ``targets``."""

    def __init__(self, executor: Executor, targets: Collection[Target]) -> None:
        self._executor, self._targets = executor, targets
        self._since: float | None = None
        self._told = False

    def is_so(self, now: float) -> bool:
        """Return True if workers have been lacking for too long at ``now``, in seconds.

        Warns once, by a :class:`RuntimeWarning`, after ``TOLD_SECONDS``.
        """
        lacking = [self._executor.lacking(target) for target in self._targets]
        if not all(lacking):
            self._since, self._told = None, False
            return False
        since = self._since = now if self._since is None else self._since
        if now - since >= TOLD_SECONDS and not self._told:
            self._told = True
            ends = f"the run ends in {since + PATIENCE_SECONDS - now:.0f} s unless one comes"
            warnings.warn(f"{lacking[0]}; {ends}", RuntimeWarning, stacklevel=2)
        return now - since >= PATIENCE_SECONDS
