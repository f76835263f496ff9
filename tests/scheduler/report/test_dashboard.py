"""``tilewright dashboard``: a page that is renewed, for whoever has its token, and for no other
site."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.scheduler.report.made_up import HOSTILE, of_records, record
from tests.scheduler.report.served import Server
from tilewright.measure.cluster.status import DriverStatus, JobStatus, WorkerStatus
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind
from tilewright.measure.records.run import Run
from tilewright.measure.tables.retries import OutOfReachError
from tilewright.measure.testing.made_up import TARGET, WORKLOAD
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.report.pages import dashboard
from tilewright.scheduler.report.pages.dashboard import Rested, names_of
from tilewright.scheduler.report.pages.live import Jobs, live_part

for library in ("jinja2", "starlette", "uvicorn"):
    pytest.importorskip(library, reason="needs the extra dashboard")


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
    state = json.loads(server.get("/news")[1])["state"]
    assert f'data-state="{state}"' in page
    with Database(db) as database:
        database.record(record(2, 2e-3))
    deadline = time.monotonic() + 60
    while json.loads(server.get("/news")[1])["state"] == state:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "2 attempts, 0 failed" in server.get("/")[1]


def test_jobs_show_what_came_since(tmp_path):
    run = Run("9af0", WORKLOAD, TARGET, session="5f2c", started_at=time.time(), heartbeat=1.7e9)
    with Database(of_records(tmp_path / "jobs", [], [run])) as database:
        jobs = Jobs(database)
        [row] = jobs.rows()
        assert row[0] == "5f2c"
        assert row[5:] == ("0", "none", "-", "-")
        database.record_all(
            [record(1, 2e-3, run="9af0"), record(2, None, run="9af0"), record(3, 9e-3)]
        )
        assert jobs.rows()[0][5:8] == ("2", "1 wrong_result", "2 ms")
        database.record_all(
            [record(4, 1e-3, run="9af0"), record(5, None, run="9af0", kind=ErrorKind.CRASH)]
        )
        [row] = jobs.rows()
        assert row[5:8] == ("4", "1 wrong_result, 1 crash", "1 ms")
        assert row[2] == "running"
        database.end_run("9af0", "trials")
        assert jobs.rows()[0][2] == "ended: trials"


def test_a_cluster_is_shown_whoever_speaks_in_it():
    job = JobStatus(HOSTILE, HOSTILE, HOSTILE, 3, 2, 1, 40, {"crash": 5, HOSTILE: 1})
    worker = WorkerStatus("measure", HOSTILE, "GPU 0", "resting", HOSTILE, 12, "it drifted")
    driver = DriverStatus(HOSTILE, time.time(), 204.5, (job,), (worker,))
    watch = SimpleNamespace(address="10.0.0.1:6379", drivers=[driver], trouble="")
    part = live_part([], watch)
    cells = [cell for _, cell in re.findall("<(td)>(.*?)</td>", part)]
    assert cells[2:6] == ["3", "2", "1", "40"]
    assert cells[6].startswith("5 crash, 1 &lt;/script&gt;")
    assert "resting" in cells
    assert "it drifted" in cells
    assert "204.5 candidates a second" in part
    assert "<script" not in part
    assert "<img" not in part
    assert "It does not answer" not in part
    watch.trouble = "the Ray cluster at 10.0.0.1:6379 is lost: <b>"
    assert "is lost: &lt;b&gt;" in live_part([], watch)
    watch.drivers = []
    assert "Nobody tunes on it." in live_part([], watch)


def test_what_takes_long_is_made_by_one_and_shown_to_others_meanwhile(monkeypatch):
    made, may_end = [], threading.Event()

    def make() -> int:
        made.append(len(made))
        if len(made) == 2:
            assert may_end.wait(60)
        return made[-1]

    monkeypatch.setattr(dashboard, "REST", 0.0)
    slow = Rested(make)
    assert slow.get() == 0
    other = threading.Thread(target=slow.get)
    other.start()
    while len(made) < 2:
        time.sleep(0.001)
    assert slow.get() == 0
    may_end.set()
    other.join()
    assert slow.get() == 2
    monkeypatch.setattr(dashboard, "REST", 1e12)
    assert slow.get() == 3
    assert slow.get() == 3
    assert not slow.is_due


def test_a_page_stays_while_its_database_is_out_of_reach(monkeypatch):
    monkeypatch.setattr(dashboard, "REST", 0.0)
    answers = iter([OutOfReachError("not yet"), "page", OutOfReachError("gone"), "next"])

    def make() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    kept = Rested(make)
    with pytest.raises(OutOfReachError, match="not yet"):
        kept.get()
    assert [kept.get() for _ in range(3)] == ["page", "page", "next"]


def test_names_that_a_browser_may_call_it_by():
    assert names_of("127.0.0.1") == ["127.0.0.1", "localhost", "[::1]"]
    assert names_of("::1") == ["[::1]", "127.0.0.1", "localhost"]
    assert names_of("Build.Example")[0] == "build.example"
    everywhere = names_of("0.0.0.0")
    assert everywhere[0] == socket.gethostname().lower()
    assert "0.0.0.0" not in everywhere
    assert {"127.0.0.1", "localhost"} < set(everywhere)


def test_others_are_refused(server):
    port = server.address.port
    assert server.get("/", token="wrong")[:2] == (403, "refused: its token is wrong\n")
    assert server.get("/news", token="")[0] == 403
    foreign = server.get("/", Host=f"evil.example:{port}")
    assert foreign[:2] == (403, "refused: it is of another site\n")
    assert server.get("/", Origin="http://evil.example")[0] == 403
    assert server.get("/", Origin=f"http://127.0.0.1:{port}")[0] == 200
    assert server.get("/", Host=f"LocalHost:{port}")[0] == 200
    assert server.get("/", Host="localhost")[0] == 403
    assert server.get("/", Origin="null")[0] == 403
    assert server.get("/other")[0] == 404


def test_browsers_that_stop_reading_stop_nothing(db, server):
    """One stops within its question; others do not read the page."""
    at = (server.address.hostname, server.address.port)
    with ExitStack() as stack:
        first, *others = (stack.enter_context(socket.socket()) for _ in range(4))
        for each in (first, *others):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            each.connect(at)
        first.sendall(b"GET /?token=")
        for each in others:
            host = f"Host: {at[0]}:{at[1]}"
            each.sendall(f"GET /?token={server.token} HTTP/1.1\r\n{host}\r\n\r\n".encode())
        with Database(db) as database:
            assert database.record(record(3, 2e-3))
        assert server.get("/")[0] == 200
        assert server.get("/news")[0] == 200
    assert server.get("/")[0] == 200


def test_a_dashboard_that_stands_still_holds_no_run_up(db, server):
    server.get("/")
    for number in range(10, 20):
        server.process.send_signal(signal.SIGSTOP)
        with Database(db) as database:
            assert database.record(record(number, 2e-3))
        server.process.send_signal(signal.SIGCONT)
        assert server.get("/news")[0] == 200


def test_it_ends_by_a_signal_and_notes_what_it_refused(server):
    """The last one that asks the server."""
    assert server.get("/", token="wrong")[0] == 403
    server.process.send_signal(signal.SIGINT)
    _, err = server.process.communicate(timeout=60)
    assert server.process.returncode == 130
    assert "refused a request from 127.0.0.1: its token is wrong\n" in err


def test_bad_input_is_one_line(db, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["dashboard", "--db", str(db), "--port", port]) == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
    assert run(["dashboard", "--db", str(of_records(tmp_path / "empty", []))]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "has no trials to report" in line


def test_a_run_that_has_no_result_yet_is_followed(tmp_path):
    begun = Run("9af0", WORKLOAD, TARGET, session="5f2c", started_at=time.time())
    server = Server(of_records(tmp_path / "begun", [], [begun]))
    try:
        assert "5f2c" in server.get("/")[1]
    finally:
        server.process.kill()
        server.process.communicate()
