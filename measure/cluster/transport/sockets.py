"""A folder for the sockets of Ray, whose paths the system keeps short."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress

from tilewright.spaces.errors import InputError, shown

LONGEST_PATH = 107
"""Bytes of the path of a socket, by Linux."""
LONGEST_NAME = len("/ray/session_2026-11-28_12-00-00_123456_1234567/sockets/plasma_store.0")
"""Bytes of what Ray adds to the folder that it is given."""
SHORT_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")


def set_short_folder() -> None:
    """Give Ray a folder of our own, which nobody else can enter, where that for temporary files has
    too long a name; it is removed when this process ends.

    :class:`InputError` where none can be made.
    """
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    if is_short(folder):
        return
    for parent in SHORT_FOLDERS:
        with suppress(OSError):
            made = tempfile.mkdtemp(prefix="tw-", dir=parent)  # mode 700
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            os.environ["RAY_TMPDIR"] = made
            return
    raise InputError(
        f"the folder for temporary files {shown(folder)} is too long for the sockets of Ray; "
        f"allowed: up to {LONGEST_PATH - LONGEST_NAME} bytes, which RAY_TMPDIR can name"
    )


def is_short(folder: str) -> bool:
    """Tell whether paths of sockets in ``folder`` are short enough."""
    return len(os.fsencode(folder)) + LONGEST_NAME <= LONGEST_PATH
