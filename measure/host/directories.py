"""The folders of the user's cache: for files that outlive a run, and for those that must not.

Binaries in the cache are executed, so everyone who can write there is trusted as the user is. A
folder that everybody can write to, or that somebody else made where everybody can, is refused. A
folder that its owner or a group can write to may be shared: a user who sets ``XDG_CACHE_HOME`` to
another folder trusts those who write there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.user_cache import user_cache

ELSEWHERE = "XDG_CACHE_HOME names another"
FOLDER_MODE = 0o775  # less what the umask takes: never for everybody to write


def cache_directory(kind: str) -> Path:
    """Return the folder for cached files of a kind, under the user's cache directory; made if
    missing.

    Raises :class:`InputError` if that is not possible, or if it is nobody's to trust.
    """
    root = user_cache()
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        for path in (root, root / kind):
            path.mkdir(mode=FOLDER_MODE, exist_ok=True)
            _check_trusted(path)
    except OSError as error:
        raise InputError(
            f"cannot use the cache folder {root / kind}: {error.strerror}; {ELSEWHERE}"
        ) from None
    return root / kind


def _check_trusted(path: Path) -> None:
    status = path.stat()
    if status.st_mode & stat.S_IWOTH:
        raise InputError(
            f"everybody can write to the cache folder {path}, whose files are run; "
            f"chmod o-w takes that away, and {ELSEWHERE}"
        )
    others = status.st_uid not in (0, os.geteuid())
    if others and path.parent.stat().st_mode & stat.S_IWOTH:
        raise InputError(
            f"the cache folder {path}, whose files are run, belongs to another user, in a folder "
            f"that everybody can write to; {ELSEWHERE}"
        )


class RunDirectory:
    """A folder for the files of this run.

    A lock marks it as in use; the system drops the lock when the process dies, however it dies,
    and the next run removes what was left behind. Raises :class:`InputError` where it cannot be
    made.
    """

    def __init__(self) -> None:
        parent = cache_directory("runs")
        try:
            with open(os.open(parent / "lock", os.O_RDONLY | os.O_CREAT, 0o664)) as guard:
                fcntl.flock(guard, fcntl.LOCK_EX)
                for leftover in parent.glob("run-*"):
                    _remove_unless_locked(leftover)
                self.path = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
                self._lock = open(self.path / "lock", "w")  # noqa: SIM115
                fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError as error:
            raise InputError(
                f"cannot write to the cache folder {parent}: {error.strerror}; {ELSEWHERE}"
            ) from None

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder. Idempotent."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_unless_locked(path: Path) -> None:
    try:
        with open(path / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # in use, or of another user
        return
    except FileNotFoundError:
        pass
    shutil.rmtree(path, ignore_errors=True)
