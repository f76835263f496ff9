"""``tilewright dashboard``: a page that is renewed, for whoever has its token, and for no other
site."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.pages import PATHS
from tests.scheduler.report.made_up import of_records, record
from tilewright.measure.database import Database
from tilewright.scheduler.cli.app import run

for library in ("jinja2", "starlette", "uvicorn"):
    pytest.importorskip(library, reason="needs the extra dashboard")


class Server:
    """A dashboard in a process of its own."""

    def __init__(self, db: Path) -> None:
        command = [sys.executable, "-m", "tilewright", "dashboard", "--db", str(db)]
        path = os.pathsep.join([PATHS, *sys.path])
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, **pipes)
        words = self.process.stdout.readline().split()
        assert words[:1] == ["open"], self.process.communicate()
        self.address = urlsplit(words[1])
        self.token = self.address.query.removeprefix("token=")

    def get(self, path: str, token: str | None = None, **headers: str) -> tuple[int, str, dict]:
        connection = HTTPConnection(self.address.hostname, self.address.port, timeout=60)
        token = self.token if token is None else token
        connection.request("GET", f"{path}?token={token}", headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(), dict(answer.getheaders())
        connection.close()
        return found


@pytest.fixture(scope="module")
def db(tmp_path_factory) -> Path:
    return of_records(tmp_path_factory.mktemp("dashboard") / "one", [record(1, 1e-3)])


@pytest.fixture(scope="module")
def server(db) -> Iterator[Server]:
    made = Server(db)
    yield made
    made.process.kill()
    made.process.communicate()


def test_the_page_is_renewed_when_a_result_arrives(db, server):
    status, page, headers = server.get("/")
    assert status == 200
    assert "1 attempt, 0 failed" in page
    assert "connect-src &#39;self&#39;" in page
    assert headers["x-frame-options"] == "DENY"
    state = json.loads(server.get("/state")[1])["state"]
    assert f'data-state="{state}"' in page
    with Database(db) as database:
        database.record(record(2, 2e-3))
    deadline = time.monotonic() + 60
    while json.loads(server.get("/state")[1])["state"] == state:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "2 attempts, 0 failed" in server.get("/")[1]


def test_others_are_refused(server):
    port = server.address.port
    assert server.get("/", token="wrong")[:2] == (403, "refused: its token is wrong\n")
    assert server.get("/state", token="")[0] == 403
    foreign = server.get("/", Host=f"evil.example:{port}")
    assert foreign[:2] == (403, "refused: it is of another site\n")
    assert server.get("/", Origin="http://evil.example")[0] == 403
    assert server.get("/", Origin=f"http://127.0.0.1:{port}")[0] == 200
    assert server.get("/", Host=f"localhost:{port}")[0] == 200
    assert server.get("/other")[0] == 404


def test_a_browser_that_stops_reading_stops_nothing(db, server):
    with socket.create_connection((server.address.hostname, server.address.port)) as slow:
        slow.sendall(b"GET /?token=")
        with Database(db) as database:
            assert database.record(record(3, 2e-3))
        assert server.get("/")[0] == 200


def test_it_ends_by_a_signal_and_notes_what_it_refused(server):
    """The last one that asks the server."""
    assert server.get("/", token="wrong")[0] == 403
    server.process.send_signal(signal.SIGINT)
    _, err = server.process.communicate(timeout=60)
    assert server.process.returncode == 130
    assert "refused a request: its token is wrong" in err


def test_bad_input_is_one_line(db, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["dashboard", "--db", str(db), "--port", port]) == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
    assert run(["dashboard", "--db", str(of_records(tmp_path / "empty", []))]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "has no trials to report" in line
