"""Read compressed files as if they were not, within limits on their unpacked size.

A few megabytes of gzip can hold gigabytes. So content is read in pieces, lines have a greatest
length, and a file that unpacks to too much, or to far more than its size, is refused.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader, RawIOBase
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from tilewright.spaces.errors import InputError

GZIP = b"\x1f\x8b"
"""The first bytes of compressed files."""

MOST_UNPACKED = 16 << 30
"""Bytes that a compressed file may unpack to."""
MOST_TIMES = 256
"""Says how many times its size a file may unpack to; exports of ours reach about a tenth of it."""
ALWAYS_UNPACKED = 64 << 20
"""Bytes that a file may unpack to whatever its size."""
LONGEST_LINE = 8 << 20
"""Bytes of a line of text."""
_PIECE = 1 << 17


@contextmanager
def decompressed(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file for reading, through gzip if it is compressed.

    :class:`InputError` for a file that cannot be read, that is no whole file of gzip, or that
    unpacks to more than the limits.
    """
    try:
        with path.open("rb") as file:
            if not file.peek(len(GZIP)).startswith(GZIP):
                yield file
                return
            with BufferedReader(_Limited(path, file), _PIECE) as stream:
                yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is no whole file of gzip: {error}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def lines(path: Path, file: BufferedIOBase, first: int) -> Iterator[tuple[int, bytes]]:
    """Yield the remaining lines of an open file with their numbers, of which ``first`` is the
    first; :class:`InputError` for one that is too long."""
    for number in count(first):
        line = file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"line {number} of {path} is longer than the {LONGEST_LINE} bytes that are allowed"
            )
        if not line:
            return
        yield number, line


class _Limited(RawIOBase):
    """The unpacked content of a gzip file, up to the limits."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._packed = path, file
        self._unpacked = gzip.GzipFile(fileobj=file)
        self._count = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack the next piece; :class:`InputError` where that is too much."""
        data = self._unpacked.read1(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        if self._count > MOST_UNPACKED:
            raise InputError(f"{self._path} unpacks to more than the {MOST_UNPACKED} bytes allowed")
        if self._count > max(ALWAYS_UNPACKED, MOST_TIMES * self._packed.tell()):
            raise InputError(
                f"{self._path} unpacks to more than {MOST_TIMES} times its size; allowed: less, "
                "or the file as it was before it was compressed"
            )
        return len(data)
