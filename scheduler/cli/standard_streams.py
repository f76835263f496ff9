"""Standard streams that may be closed at their other end, as pipes to ``head`` are."""

from __future__ import annotations

import os
import sys


def flush_output() -> None:
    """Write what standard output still holds, or, if it takes nothing more, throw it away."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_output(1)


def discard_output(number: int) -> None:
    """Throw away what is still to be written to a stream that takes nothing more."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
