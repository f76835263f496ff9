"""Checks of the file that an SQLite database is in, before SQLAlchemy is loaded to open it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TypeGuard

from tilewright.spaces.errors import InputError, shown


class EmptyDatabaseError(InputError):
    """A database that does not exist, or that nobody has made tables in yet."""


def is_path(location: object) -> TypeGuard[str | Path]:
    """Tell whether this names a database by the path of its file, and not by a URL."""
    return isinstance(location, str | Path) and "://" not in str(location)


def check_file(path: str | None, location: str | Path, create: bool) -> None:
    """:class:`InputError` if no database can be at ``path``, and :class:`EmptyDatabaseError` if
    none is there and ``create`` is false. People named it as ``location``."""
    if path in (None, "", ":memory:"):
        raise InputError(f"database {location} would be lost on exit; give the path of a file")
    _check_name(path)
    if not _is_there(path) and not create:
        raise EmptyDatabaseError(f"there is no database at {path}")
    _check_folder(path)


def _check_name(path: str) -> None:
    if "\0" in path:
        raise InputError(f"no file can be named {shown(path)}, with a zero byte in it")
    if path.endswith(os.sep):
        raise InputError(f"database {path} is no file; allowed: the path of a file, or a URL")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(f"no database can be named {shown(path)}, which is no text") from None


def _check_folder(path: str) -> None:
    """:class:`InputError` for a relative path where the folder that it is relative to is gone."""
    try:
        os.path.abspath(path)
    except FileNotFoundError:
        raise InputError(f"database {path} is in a folder that is gone") from None


def _is_there(path: str) -> bool:
    """Tell whether the file exists; :class:`InputError` if the path cannot name a file."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:  # a name that is too long, for example
        raise InputError(f"database {shown(path)} cannot be used: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"database {path} is no file; allowed: the path of a file, or a URL")
    return True
