"""Work shared out among processes, which are forked from this one and end with it."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


def map_in_processes(
    work: Callable[[Item], Made], items: Sequence[Item], jobs: int
) -> Iterator[Made]:
    """Yield ``work(item)`` for each of ``items``, in their order, computed by ``jobs`` processes.

    What ``work`` needs is read by all from this process's memory. It raises what ``work`` raises,
    and ChildProcessError if a process is killed.
    """
    if jobs == 1 or len(items) < 2:
        yield from map(work, items)
        return
    context = get_context("fork")
    with ExitStack() as stack:
        receivers: list[Connection] = []
        for first in range(min(jobs, len(items))):
            receiver, sender = context.Pipe(duplex=False)
            own = items[first::jobs]
            process = context.Process(target=_serve, args=(work, own, sender, os.getpid()))
            process.start()
            stack.callback(process.join)
            stack.callback(process.kill)
            sender.close()  # so that the process's end is seen as the end of what it sends
            receivers.append(receiver)
        for place in range(len(items)):
            yield _received(receivers[place % jobs])


def _received(receiver: Connection) -> Any:
    try:
        made = receiver.recv()
    except EOFError:
        raise ChildProcessError("a process that replayed runs was killed") from None
    if isinstance(made, Exception):
        raise made
    return made


def _serve(
    work: Callable[[Item], Made], items: Sequence[Item], sender: Connection, parent: int
) -> None:
    """Do the items one after the other, whatever the terminal says: the parent ends this."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        return
    for item in items:
        try:
            sender.send(work(item))
        except Exception as error:
            sender.send(error)
            return
