"""Databases with our tables and nothing in them: copies, for making the tables takes longer."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from tilewright.measure.database import Database


def empty(folder: Path) -> Path:
    """A new file in ``folder``."""
    path = folder / "tuning.db"
    path.write_bytes(_content())
    return path


@cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        Database(path).close()
        return path.read_bytes()
