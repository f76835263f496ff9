"""A database for each test."""

import pytest

from tests import databases
from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import attempt, failed, measured


@pytest.fixture
def path(tmp_path):
    """A database of two records."""
    location = databases.empty(tmp_path)
    with Database(location) as database:
        database.record_all([attempt(measured(1, 1.0)), attempt(failed(2))])
    return location
