"""Cached files, made once and kept: binaries, cubins, the machine's peak rates.

Such a file ends in a line with the SHA-256 of its name and its content. It is read whole and
compared with that line before it is used. A file that a full disk, a power cut or another program
truncated or changed is therefore made again, and never loaded. The line does not protect against
people: see :mod:`measure.host.directories` for who is trusted.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilewright.measure.host.directories import ELSEWHERE, RunDirectory, cache_directory
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.files import write_whole

KINDS = ("binaries", "cubins", "emulator", "peaks", "tests")
"""Kinds of cached files, named as their folders; the last are of Tilewright's own tests."""
MOST_BYTES = 256 << 20
"""The most bytes of one kind of files together; the least recently used go first."""
KEPT_SHARE = 0.9
"""Share of that which is left then, so that not every new file takes others away."""
COUNTED_SHARE = 0.02
"""Share of that after which a process that adds files counts all of them again."""
USED_SECONDS = 60.0
"""Time after which a file is noted as used again."""

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
        """The file's path; :class:`InputError` where there can be no cache."""
        return cache_directory(self.kind) / self.name

    def read(self) -> bytes | None:
        """Return its content if the file exists and is whole; links are ignored."""
        path = self.path
        try:
            sealed = b"" if path.is_symlink() else path.read_bytes()
        except OSError:
            return None
        content = sealed[:-SEAL_BYTES]
        if sealed != content + self._seal(content):
            return None
        _note_use(path)
        return content

    def write(self, content: bytes, executable: bool = False) -> None:
        """Keep ``content``. :class:`InputError` where that is not possible."""
        path = self.path
        try:
            if path.is_symlink():
                path.unlink()
            with RunDirectory() as scratch:
                write_whole(path, content + self._seal(content), scratch.path, executable)
            _make_room(path, len(content) + SEAL_BYTES)
        except OSError as error:
            raise InputError(
                f"cannot write to the cache folder {path.parent}: {error.strerror}; {ELSEWHERE}"
            ) from None

    def content(self, make: Callable[[], bytes]) -> bytes:
        """Return its content, made by ``make`` if there is no whole file.

        If the file cannot be kept, it will be made again next time: a cache that is full or not
        writable costs time only.
        """
        content = self.read()
        if content is None:
            content = make()
            with suppress(InputError):
                self.write(content)
        return content

    def program(self, make: Callable[[], bytes]) -> Path:
        """Return the path of this file as a program that is whole and may be run, by ``make`` if
        needed.

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


@dataclass(frozen=True)
class CachedKind:
    """The cached files of one kind: their number and their bytes."""

    kind: str
    path: Path
    files: int
    bytes: int


def cached_kinds() -> list[CachedKind]:
    """List the cached files by kind; :class:`InputError` where there can be no cache."""
    folders = [(kind, cache_directory(kind)) for kind in KINDS]
    found = [(kind, path, _files(path)) for kind, path in folders]
    return [
        CachedKind(kind, path, len(files), sum(size for _, size, _ in files))
        for kind, path, files in found
    ]


def clear() -> None:
    """Remove all files that are kept. Programs that run go on; what is missing is made again."""
    for kind in KINDS:
        for _, _, path in _files(cache_directory(kind)):
            with suppress(OSError):
                os.unlink(path)


def _files(folder: Path) -> list[tuple[float, int, str]]:
    """Say when each file of a folder was used last, its size and its path; links are none of
    ours."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # somebody else has made room
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime, status.st_size, entry.path))
    return found


def _note_use(path: Path) -> None:
    with suppress(OSError):  # of another user, or where nothing can be written
        if abs(time.time() - path.stat().st_mtime) > USED_SECONDS:
            os.utime(path)


_added: dict[Path, float] = {}
"""Bytes that this process added to folders since it counted their files."""


def _make_room(new: Path, size: int) -> None:
    """Remove the least recently used files of a folder that has become too large by ``new``, which
    has ``size`` bytes; files are counted at the first one of a process and then now and then."""
    share = COUNTED_SHARE * MOST_BYTES
    _added[new.parent] = _added.get(new.parent, share) + size
    if _added[new.parent] < share:
        return
    _added[new.parent] = 0
    files = _files(new.parent)
    total = sum(size for _, size, _ in files)
    if total <= MOST_BYTES:
        return
    for _, size, path in sorted(files):
        if total <= KEPT_SHARE * MOST_BYTES:
            return
        if path != str(new):
            with suppress(OSError):
                os.unlink(path)
                total -= size
