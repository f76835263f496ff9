"""Files that outlive a run (built once, found by name), and folders that must not outlive it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import platformdirs

from spaces.errors import InputError


def cache_directory(kind: str) -> Path:
    """The folder for cached files of a kind, under the user's cache directory; made if missing.

    Raises :class:`InputError` if that is not possible.
    """
    path = platformdirs.user_cache_path("tilewright") / kind
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot use the cache folder {path}: {error.strerror}; XDG_CACHE_HOME names another"
        ) from None
    return path


def cached(path: Path, make: Callable[[Path], None]) -> Path:
    """``path``, which ``make`` writes first if it is missing.

    It is written under another name and renamed, so that nobody ever sees half a file.
    """
    if path.exists():
        return path
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    os.close(descriptor)
    try:
        make(Path(name))
        os.replace(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    return path


class RunDirectory:
    """A folder for the files of this run.

    A lock marks it as in use; the system drops the lock when the process dies, however it dies,
    and the next run removes what was left behind.
    """

    def __init__(self) -> None:
        parent = cache_directory("runs")
        with open(parent / "lock", "w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            for leftover in parent.glob("run-*"):
                _remove_unless_locked(leftover)
            self.path = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
            self._lock = open(self.path / "lock", "w")  # noqa: SIM115
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder. Idempotent."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_unless_locked(path: Path) -> None:
    try:
        with open(path / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    except FileNotFoundError:
        pass
    shutil.rmtree(path, ignore_errors=True)
