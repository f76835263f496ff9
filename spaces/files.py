"""Files that are there as a whole or not at all, whatever ends the program or the machine."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_whole(
    path: Path, content: bytes, scratch: Path | None = None, executable: bool = False
) -> None:
    """Write ``path``, which then holds all of ``content``, or, on OSError, what it held before.

    It is written under another name in ``scratch`` (a folder of the same file system, by default
    its own), is on disk before it is renamed, and has the rights that the umask leaves to it.
    """
    temporary = (scratch or path.parent) / f".{path.name}.{secrets.token_hex(4)}"
    mode = 0o777 if executable else 0o666
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Make a rename last; some file systems cannot, and then it is up to them."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
