"""Exit codes of commands; 0 is success."""

from __future__ import annotations

from tilewright.measure.tables.retries import OutOfReachError
from tilewright.spaces.errors import InputError

NO_KERNEL = 1  # no kernel was right, or the machine failed
BAD_INPUT = 2
NO_DATABASE = 3  # its server went away, and stayed away
BY_SIGNAL = 128  # a process ended by a signal has this exit code plus the signal's number


def exit_code_of(error: InputError) -> int:
    """Return the exit code of a command that an error ended."""
    return NO_DATABASE if isinstance(error, OutOfReachError) else BAD_INPUT
