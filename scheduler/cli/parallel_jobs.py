"""Run several jobs of one command, one after the other or in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from tilewright.scheduler.cli.exit_codes import BY_SIGNAL, exit_code_of
from tilewright.scheduler.cli.text import say
from tilewright.scheduler.tuning.interrupt import Interrupt
from tilewright.spaces.errors import InputError

Job = tuple[str, Callable[[], int]]
"""The name that it goes by, and what it does: it gives an exit code."""


def run_in_sequence(jobs: Sequence[Job]) -> int:
    """Carry out one job after the other, none after one that a signal ended; the largest of their
    exit codes."""
    worst = 0
    for _, job in jobs:
        worst = max(worst, job())
        if worst > BY_SIGNAL:
            break
    return worst


def run_in_parallel(jobs: Sequence[Job]) -> int:
    """Carry out all jobs at the same time, a thread each, to their end; the largest exit code.

    The first signal is told to all of them by their :class:`Interrupt`, the second ends the wait.
    One that fails does not end the others: what was wrong is raised when all have ended, and said
    with its name where others came further.
    """
    if len(jobs) == 1:
        return jobs[0][1]()
    codes: list[int] = []
    errors: dict[str, Exception] = {}

    def run(name: str, job: Callable[[], int]) -> None:
        try:
            codes.append(job())
        except Exception as error:
            errors[name] = error

    threads = [threading.Thread(target=run, args=job, daemon=True) for job in jobs]
    with Interrupt():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return max([*codes, *_failed(errors, len(jobs))])


def _failed(errors: Mapping[str, Exception], jobs: int) -> list[int]:
    """Say what was wrong with some of the ``jobs``; their exit codes. What was wrong with all of
    them, or is no bad input, is raised."""
    for error in errors.values():
        alike = len(errors) == jobs and len(set(map(str, errors.values()))) == 1
        if alike or not isinstance(error, InputError):
            raise error
    for name, error in errors.items():
        say(f"{name}: {error}")
    return [exit_code_of(error) for error in errors.values() if isinstance(error, InputError)]
