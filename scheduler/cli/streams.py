"""Standard streams that take nothing more."""

from __future__ import annotations

import os
import sys


def flush() -> None:
    """Write what standard output still holds, or, if it takes nothing more, throw it away."""
    try:
        sys.stdout.flush()
    except OSError:
        silence(1)


def silence(number: int) -> None:
    """Throw away what is still to be written to a stream that takes nothing more."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
