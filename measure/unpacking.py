"""Binaries that came as bytes, as the files that a measuring process loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tilewright.measure.host.directories import RunDirectory
from tilewright.measure.interfaces import Built


@contextmanager
def unpacked(built: Sequence[Built]) -> Iterator[list[Built]]:
    """Give ``built`` with a file for each binary; those written here are gone after the block."""
    packed = [b.binary for b in built if isinstance(b.binary, bytes)]
    if not packed:
        yield list(built)
        return
    folder = RunDirectory()
    try:
        yield [_unpacked(b, folder, number) for number, b in enumerate(built)]
    finally:
        folder.close()


def _unpacked(built: Built, folder: RunDirectory, number: int) -> Built:
    if not isinstance(built.binary, bytes):
        return built
    path = folder.path / f"binary{number}"
    path.write_bytes(built.binary)
    return replace(built, binary=path)
