"""A dashboard goes on where the PostgreSQL server of its database starts again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from signal import SIGINT

import pytest

from tests.measure import postgresql
from tests.measure.conftest import server_binaries  # noqa: F401
from tests.scheduler.report.made_up import record
from tests.scheduler.report.served import Server
from tilewright.measure.database import Database

for library in ("jinja2", "starlette", "uvicorn", "psycopg"):
    pytest.importorskip(library, reason="needs the extras dashboard and postgres")


def test_a_server_that_restarts_is_told_and_waited_for(server_binaries: Path):  # noqa: F811
    with postgresql.server(server_binaries) as database_server:
        location = database_server.new_database()
        with Database(location) as database:
            database.record(record(1, 1e-3))
        shown = Server(location.replace("@", ":hunter2@"))
        try:
            state = json.loads(shown.get("/news")[1])["state"]
            database_server.stop(SIGINT)
            status, said, _ = shown.get("/news")
            assert status == 503
            assert "\n" not in said.strip()
            assert "hunter2" not in said
            status, page, _ = shown.get("/")
            assert status == 200
            assert "1 attempt, 0 failed" in page
            database_server.start()
            with Database(location) as database:
                database.record(record(2, 2e-3))
            deadline = time.monotonic() + 60
            while json.loads(shown.get("/news")[1])["state"] == state:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert "2 attempts, 0 failed" in shown.get("/")[1]
        finally:
            shown.process.kill()
            shown.process.communicate()
