"""Processes of which nothing outlives this one: see keeper.c."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress

Word = str | os.PathLike[str]


def supervised(command: Sequence[Word], memory_bytes: int = 0, cpu_seconds: int = 0) -> list[Word]:
    """Return ``command``, run so that all it starts ends with it, and at the latest with this
    thread.

    The limits are for each process; 0 is none.
    """
    from tilewright.measure.cpu.binaries import (
        keeper_binary,  # which is itself built by a compiler's run
    )

    return [keeper_binary(), str(os.getpid()), str(memory_bytes), str(cpu_seconds), *command]


def end(keeper: int) -> None:
    """Ask the process of a :func:`supervised` command to end, and all that the command started.

    It may take a moment, and is woken up for it if somebody stopped it.
    """
    with suppress(ProcessLookupError):
        os.kill(keeper, signal.SIGTERM)
        os.kill(keeper, signal.SIGCONT)
