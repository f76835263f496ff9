"""Files that are made once and kept: binaries, cubins, what this machine can do at most.

Such a file ends in a line with the SHA-256 of its name and its content. It is read whole and
compared with that line before anything is done with it, so that a file that a full disk, a power
cut or a stray program left short or changed is made again, and never loaded. The line is no
protection from people: see :mod:`measure.host.directories` for who is trusted.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from measure.host.directories import ELSEWHERE, RunDirectory, cache_directory
from spaces.errors import InputError
from spaces.validation.files import write_whole

MARK = b"\nsha256 "
SEAL_BYTES = len(MARK) + 64 + 1


@dataclass(frozen=True)
class CachedFile:
    """The file called ``name`` among those of a ``kind``, which is a folder of the cache.

    A name stands for all that its content depends on: no two contents belong under one.
    """

    kind: str
    name: str

    @property
    def path(self) -> Path:
        """Where it is kept; :class:`InputError` where there can be no cache."""
        return cache_directory(self.kind) / self.name

    def read(self) -> bytes | None:
        """Its content, if it is there and whole; links are nothing of the cache's."""
        path = self.path
        try:
            sealed = b"" if path.is_symlink() else path.read_bytes()
        except OSError:
            return None
        content = sealed[:-SEAL_BYTES]
        return content if sealed == content + self._seal(content) else None

    def write(self, content: bytes, executable: bool = False) -> None:
        """Keep ``content``. :class:`InputError` where that is not possible."""
        path = self.path
        try:
            if path.is_symlink():
                path.unlink()
            with RunDirectory() as scratch:
                write_whole(path, content + self._seal(content), scratch.path, executable)
        except OSError as error:
            raise InputError(
                f"cannot write to the cache folder {path.parent}: {error.strerror}; {ELSEWHERE}"
            ) from None

    def content(self, make: Callable[[], bytes]) -> bytes:
        """Its content, by ``make`` where there is none that is whole.

        Where it cannot be kept, it will be made again next time: a cache that is full or not
        ours to write costs time, but no answer.
        """
        content = self.read()
        if content is None:
            content = make()
            with suppress(InputError):
                self.write(content)
        return content

    def program(self, make: Callable[[], bytes]) -> Path:
        """The path of this file as a program that is whole and may be run, by ``make`` if needed.

        Raises :class:`InputError` where it cannot be kept or run.
        """
        content, path = self.read(), self.path
        if content is None or not os.access(path, os.X_OK):
            self.write(make() if content is None else content, executable=True)
        if not os.access(path, os.X_OK):
            raise InputError(f"programs in {path.parent} cannot be run; {ELSEWHERE}")
        return path

    def remove(self) -> None:
        """Forget it, where it is ours to forget."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _seal(self, content: bytes) -> bytes:
        digest = hashlib.sha256(self.name.encode() + b"\0" + content)
        return MARK + digest.hexdigest().encode() + b"\n"
