"""Waiting for a database that another process has locked, or whose server starts again.

Whoever finds a database locked waits for a minute, as ever. A job waits for a server that has gone,
too, but neither for longer than it has time, nor once it was asked to end.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from math import inf
from typing import ParamSpec, TypeVar

from tilewright.spaces.errors import InputError

LOCKED_SECONDS = 60.0
"""Says how long a database that is locked is waited for."""
ATTEMPT_SECONDS = 0.5
"""Says how much of that each attempt of a job takes."""
OUTAGE_SECONDS = 120.0
"""Says how long a job waits for a server that does not answer."""
TOLD_SECONDS = 5.0
"""Time after which a job says that it waits."""
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5  # seconds between two attempts

Parameters = ParamSpec("Parameters")
Found = TypeVar("Found")


class UnavailableError(InputError):
    """A database that cannot be used now, and may be later."""


class LockedError(UnavailableError):
    """A database that another process has locked."""


class OutOfReachError(UnavailableError):
    """A database whose server does not answer, or ended the connection."""


@dataclass(frozen=True)
class _Job:
    """A retried operation: it gives up at the time ``until``, or as soon as it is to ``hurry``."""

    until: float
    hurry: Callable[[], bool]


_job: ContextVar[_Job | None] = ContextVar("job", default=None)


@contextmanager
def waiting(until: float = inf, hurry: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Within this block, wait for servers that are out of reach. A database is waited for until the
    time ``until`` (by ``time.monotonic``), or until ``hurry`` says so, and no longer than a block
    around this one allows.
    """
    around = _job.get()
    if around is None:
        here = _Job(until, hurry)
    else:
        outer = around.hurry
        here = _Job(min(until, around.until), lambda: outer() or hurry())
    token = _job.set(here)
    try:
        yield
    finally:
        _job.reset(token)


def attempt_seconds() -> float:
    """Return the seconds that one attempt may wait for a locked database: signals are not handled
    meanwhile.
    """
    return LOCKED_SECONDS if _job.get() is None else ATTEMPT_SECONDS


def retried(work: Callable[Parameters, Found]) -> Callable[Parameters, Found]:
    """Return ``work``, which may be done twice, and is tried again where a database is
    unavailable."""

    @wraps(work)
    def tried(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Found:
        wait = _Wait()
        while True:
            try:
                return work(*args, **kwargs)
            except UnavailableError as error:
                wait.go_on_or_raise(error)

    return tried


class _Wait:
    """The time from the first attempt on."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._pause = FIRST_PAUSE
        self._told = False

    def go_on_or_raise(self, error: UnavailableError) -> None:
        """Pause before the next attempt; raise the ``error`` where none is due."""
        now, job = time.monotonic(), _job.get()
        until = self._since + _allowed(error, job)
        if job is not None:
            until = min(until, job.until)
        if now >= until or (job is not None and job.hurry()):
            raise error
        if job is not None and not self._told and now - self._since >= TOLD_SECONDS:
            self._told = True
            warnings.warn(
                f"{error}; waiting, for {until - now:.0f} s at most", RuntimeWarning, stacklevel=4
            )
        time.sleep(min(self._pause, until - now))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


def _allowed(error: UnavailableError, job: _Job | None) -> float:
    """Return the seconds to wait in all."""
    if isinstance(error, LockedError):
        return LOCKED_SECONDS
    return 0.0 if job is None else OUTAGE_SECONDS
