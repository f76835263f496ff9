"""What the tests of suites share."""

from __future__ import annotations

import pytest

from tests.scheduler.made_up_machine import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time by which the tuner goes."""
    made = Clock()
    monkeypatch.setattr("scheduler.tuning.progress.time", made)
    return made
