"""Files that are there as a whole or not at all, whatever ends the program or the machine; and
streams for those that others read at once."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from tilewright.spaces.errors import InputError

STANDARD_OUTPUT = Path("-")
DATABASE = b"SQLite format 3\0"  # what a file of SQLite begins with


def check_place(path: Path, what: str) -> None:
    """Raise :class:`InputError` where something stands that a file must not take the place of: a
    folder, a device, a pipe, a database. ``what`` names what the file holds."""
    if path.exists() and not path.is_file():
        raise InputError(f"{str(path)!r} is no file; {what} goes to a new file or replaces one")
    if _is_database(path):
        raise InputError(f"{str(path)!r} is a database, which {what} must not replace")


def _is_database(path: Path) -> bool:
    """Tell whether this is a file of SQLite that can be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(DATABASE)) == DATABASE
    except OSError:
        return False


@contextmanager
def output_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """Give a file to write to ``path``: a stream as it is (:func:`is_stream`), any other place as a
    :func:`whole_file`. ``what`` names what it holds.

    Raises :class:`InputError` where it cannot be written, and BrokenPipeError where nobody reads a
    pipe any more.
    """
    if not is_stream(path):
        check_place(path, what)
    try:
        with _stream(path) if is_stream(path) else whole_file(path) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def make_folder(path: Path) -> None:
    """Make a folder unless it is there; :class:`InputError` where there can be none."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{str(path)!r} is no folder; allowed: a new folder or one") from None
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror}") from None


def is_stream(path: Path) -> bool:
    """Tell whether ``path`` is a pipe, a terminal, or standard output, which is called ``-``:
    written data goes on at once.
    """
    return path == STANDARD_OUTPUT or path.is_fifo() or path.is_char_device()


@contextmanager
def _stream(path: Path) -> Iterator[IO[bytes]]:
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    with path.open("wb") as file:
        yield file


def write_whole(
    path: Path, content: bytes, scratch: Path | None = None, executable: bool = False
) -> None:
    """Write ``path``, which then holds all of ``content``, or, on OSError, what it held before.

    See :func:`whole_file`.
    """
    with whole_file(path, scratch, executable) as file:
        file.write(content)


@contextmanager
def whole_file(
    path: Path, scratch: Path | None = None, executable: bool = False
) -> Iterator[IO[bytes]]:
    """Open a file that becomes ``path`` when the block ends; if the block fails, nothing changes.

    The file is written in ``scratch`` (a folder of the same file system, by default that of
    ``path``), without a name where the file system can do that, so that nothing remains of it if
    the program is killed. It is on disk before it gets its name, and has the rights that the umask
    grants. If ``path`` is a symbolic link, the file replaces the link's destination.
    """
    path = path.resolve()
    draft = (scratch or path.parent) / f".{path.name}.{secrets.token_hex(4)}"
    descriptor = _create(draft, 0o777 if executable else 0o666)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            _name(descriptor, draft)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _sync_folder(path.parent)


def _create(draft: Path, mode: int) -> int:
    """Return a new file without a name, or, where there can be none, under the name ``draft``."""
    with suppress(OSError):
        return os.open(draft.parent, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode)
    return os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def _name(descriptor: int, draft: Path) -> None:
    """Give an open file the name ``draft``, if it has none."""
    if os.fstat(descriptor).st_nlink:
        return
    folder = os.open(draft.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(f"/proc/self/fd/{descriptor}", draft.name, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _sync_folder(path: Path) -> None:
    """Make a rename last; some file systems cannot, and then it is up to them."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_now(path: Path) -> BinaryIO:
    """Return a file open for reading, or a pipe that somebody writes to; one that nobody does is
    empty, where it would keep its reader waiting."""

    def opener(name: str, flags: int) -> int:
        descriptor = os.open(name, flags | os.O_NONBLOCK)
        os.set_blocking(descriptor, True)
        return descriptor

    return open(path, "rb", opener=opener)
