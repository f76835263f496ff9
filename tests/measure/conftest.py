"""The PostgreSQL server that tests of databases share."""

from __future__ import annotations

import os

import pytest

from tests.measure import postgresql


@pytest.fixture(scope="package")
def server_binaries():
    """Where a PostgreSQL server's programs are; skipped where there are none, but not in CI."""
    found = postgresql.binaries()
    if found is None:
        reason = "no PostgreSQL server here: neither on the path nor where Debian has it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="package")
def server(server_binaries):
    with postgresql.server(server_binaries) as running:
        yield running
