"""What the tests of the scheduler share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import databases
from tests.scheduler.made_up_machine import Clock
from tilewright.measure.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty one."""
    with Database(databases.empty(tmp_path)) as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time by which tuners go."""
    made = Clock()
    monkeypatch.setattr("tilewright.scheduler.tuning.ledger.time", made)
    return made
