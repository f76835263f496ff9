"""Runs many actions, each in a forked child of its own, and says which of them did harm."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LIMIT = 120.0  # seconds of one action; what takes longer hangs
DOING = "doing "  # what a line begins with that tells where an action has come to

Action = Callable[[], None]


@dataclass
class Child:
    """One running action."""

    number: int
    process: int
    descriptor: int
    said: Path
    deadline: float


def harms(actions: Sequence[Action], folder: Path, limit: float = LIMIT) -> list[str]:
    """What is to be said against the actions, one text each: an exception that got out, a death
    by a signal, a hang, anything on the descriptor of standard error."""
    waiting = list(enumerate(actions))[::-1]
    running: list[Child] = []
    found = []
    most = len(os.sched_getaffinity(0))
    try:
        while waiting or running:
            while waiting and len(running) < most:
                number, action = waiting.pop()
                running.append(_start(number, action, folder / f"said-{number}", limit))
            for child, status in _ended(running):
                running.remove(child)
                if harm := _harm(child, status):
                    found.append(f"case {child.number}: {harm}")
    finally:
        for child in running:
            _reap(child)
    return found


def tell(text: str) -> None:
    """Within an action: what it does next, for the case that it does not come back."""
    print(f"{DOING}{text.splitlines()[0]}", flush=True)


def _start(number: int, action: Action, said: Path, limit: float) -> Child:
    process = os.fork()
    if not process:
        _be_child(action, said)
    return Child(number, process, os.pidfd_open(process), said, time.monotonic() + limit)


def _be_child(action: Action, said: Path) -> None:
    """Never returns: nothing of the parent's goes on in the child."""
    code = 1
    try:
        os.setsid()
        file = os.open(said, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        action()
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.stderr)
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _ended(running: Sequence[Child]) -> Iterator[tuple[Child, int]]:
    """The children that have ended, or are past their time, and their wait status."""
    poller = select.poll()
    for child in running:
        poller.register(child.descriptor, select.POLLIN)
    ready = {descriptor for descriptor, _ in poller.poll(1000)}
    for child in list(running):
        if child.descriptor in ready or time.monotonic() > child.deadline:
            yield child, _reap(child)


def _reap(child: Child) -> int:
    """End a child and all that it started; its wait status."""
    if not select.select([child.descriptor], [], [], 0)[0]:
        with suppress(ProcessLookupError):
            os.kill(child.process, signal.SIGALRM)
    _, status = os.waitpid(child.process, 0)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process, signal.SIGKILL)
    os.close(child.descriptor)
    return status


def _harm(child: Child, status: int) -> str:
    said = child.said.read_text(errors="replace")
    child.said.unlink()
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return f"hangs after {said[-300:]!r}"
    if code < 0:
        return f"dies of {signal.Signals(-code).name} after {said[-300:]!r}"
    blameless = all(line.startswith(DOING) or not line.strip() for line in said.splitlines())
    return "" if blameless and not code else said[-3000:]
