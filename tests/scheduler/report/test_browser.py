"""A browser opens a report at two widths, light and dark: it sorts, searches, and asks for
nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from tests.scheduler.report.made_up import hostile, many, tuned
from tilewright.scheduler.cli.app import run

pytest.importorskip("jinja2", reason="needs the extra report")

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
SECONDS = 120
VISIT = Path(__file__).with_name("visit.html")
COLOURS = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 27)"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BROWSER, reason="needs Chromium")]


class Handler(BaseHTTPRequestHandler):
    """Serves a report and the page that visits it; keeps what is asked for and reported."""

    def __init__(self, *rest: Any, report: Path, asked: list, reports: Queue, **named: Any) -> None:
        self.report, self.asked, self.reports = report, asked, reports
        super().__init__(*rest, **named)

    def do_GET(self) -> None:
        name = self.path.partition("?")[0]
        self.asked.append(name)
        content = {"/visit.html": VISIT, "/report.html": self.report}.get(name)
        self.send_response(200 if content else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if content:
            self.wfile.write(content.read_bytes())

    def do_POST(self) -> None:
        self.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Keeps quiet."""


def visited(db: Path, width: int, scheme: str, search: str) -> tuple[dict[str, Any], list, str]:
    """What the page reports, what was asked for, and what the browser's console says."""
    page = db.with_name("report.html")
    assert run(["report", "--db", str(db), "--out", str(page)]) == 0
    asked: list[str] = []
    reports: Queue[Any] = Queue()
    handler = partial(Handler, report=page, asked=asked, reports=reports)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/visit.html?width={width}&search={search}"
        options = [
            *("--headless=new", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"),
            f"--user-data-dir={db.parent / 'browser'}",
            *(["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []),
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "--remote-debugging-port=0",
        ]
        log = db.parent / "console.txt"
        with log.open("w") as said:
            browser = subprocess.Popen([BROWSER, *options, address], stdout=said, stderr=said)
            try:
                report = reports.get(timeout=SECONDS)
            finally:
                browser.terminate()
                browser.wait()
        server.shutdown()
    lines = [line for line in log.read_text(errors="replace").splitlines() if "CONSOLE" in line]
    return report, asked, "\n".join(line for line in lines if "favicon" not in line)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_is_used_at_any_width_light_and_dark(tmp_path, width, scheme):
    report, asked, console = visited(many(tmp_path / "many", 5, 12), width, scheme, "c%3D33")
    assert console == ""
    assert set(asked) - {"/favicon.ico"} == {"/visit.html", "/report.html"}
    assert (report["width"], report["wider"]) == (width, 0)
    assert (report["all"], report["found"], report["none"]) == (5, 1, 0)
    assert report["rising"] == sorted(report["rising"])
    assert report["falling"] == sorted(report["falling"], reverse=True)
    assert report["nameless"] == 0
    assert report["back"] == COLOURS[scheme]


@pytest.mark.timeout(300)
def test_each_figure_has_as_many_points_as_it_says(tmp_path):
    report, _, console = visited(tuned(tmp_path), 1600, "light", "matmul")
    assert console == ""
    assert report["points"]
    for told, drawn, has_title in report["points"]:
        assert drawn == told
        assert has_title


@pytest.mark.timeout(300)
def test_markup_of_a_stranger_does_nothing(tmp_path):
    report, asked, console = visited(hostile(tmp_path / "hostile"), 360, "light", "matmul")
    assert console == ""
    assert set(asked) - {"/favicon.ico"} == {"/visit.html", "/report.html"}
    assert report["title"].startswith("Tilewright: ")
    assert report["wider"] == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("width", [360, 1600])
def test_a_brush_chooses_trials_by_keyboard_and_by_pointer(tmp_path, width):
    report, _, console = visited(tuned(tmp_path), width, "dark", "matmul")
    assert console == ""
    assert report["wider"] == 0
    brushed = report["brushed"]
    whole, chosen, dragged = (brushed[name] for name in ("all", "chosen", "dragged"))
    assert whole["said"] == "48 of 48 trials chosen"
    assert (len(whole["rows"]), whole["drawn"]) == (48, 0)
    column = [row[3] for row in chosen["rows"]]
    least = min({row[3] for row in whole["rows"]}, key=int)
    assert column == [row[3] for row in whole["rows"] if row[3] == least]
    assert 0 < len(column) == 48 - chosen["drawn"] < 48
    assert [row for row in chosen["rows"] if row in dragged["rows"]] == dragged["rows"]
    assert len(dragged["rows"]) < len(column)
    assert brushed["again"] == whole
    assert brushed["head"][:3] == ["trial", "latency", "by"]
