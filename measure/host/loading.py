"""Shared objects into this process, from bytes that nobody can change any more.

A library that is mapped from a file takes the process down once that file is cut short. So it is
mapped from a sealed file in memory.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL

_numbers = count(1)


@contextmanager
def sealed_file(content: bytes) -> Iterator[str]:
    """Give the path of a file that holds ``content`` and lives in memory, for as long as the
    context; what was mapped from it stays mapped. No other call has given the same path."""
    descriptor = os.memfd_create("tilewright", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        yield _unique(f"fd/{descriptor}")
    finally:
        os.close(descriptor)


def _unique(entry: str) -> str:
    """Return the path of an entry of this process's folder in /proc, spelled as never before.

    Descriptors are used again, and the dynamic linker takes a path that it has met for the
    library that it loaded from there. So the digits of a number are spelled into each path, as
    slashes and dots, which lead nowhere else.
    """
    digits = f"{next(_numbers):b}"
    return "/proc/self/" + "".join("./" if digit == "1" else "/" for digit in digits) + entry
