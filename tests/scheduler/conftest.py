"""What the tests of the scheduler share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from measure.database import Database
from tests import databases


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty one."""
    with Database(databases.empty(tmp_path)) as opened:
        yield opened
