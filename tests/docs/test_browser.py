"""A browser opens every page at the widths of a telephone and of a screen, and searches."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from tests.docs.site import Site

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
WIDTHS = (360, 1600)
SECONDS = 240
VISIT = Path(__file__).with_name("visit.html")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER, reason="needs Chromium"),
]


class Handler(SimpleHTTPRequestHandler):
    """Serves the site and the page that visits it; keeps what that page reports."""

    def __init__(self, *rest: Any, reports: Queue[Any], **named: Any) -> None:
        self.reports = reports
        super().__init__(*rest, **named)

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/visit.html":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(VISIT.read_bytes())
        return None

    def do_POST(self) -> None:
        self.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Keeps quiet."""


@pytest.fixture(params=WIDTHS)
def width(request) -> int:
    return request.param


@pytest.fixture
def visit(site: Site, tmp_path, width) -> Iterator[Any]:
    """Opens pages in a frame of so many pixels: what was found, by page."""
    reports: Queue[Any] = Queue()
    handler = partial(Handler, directory=str(site.folder), reports=reports)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()

        def opened(pages: list[str]) -> dict[str, Any]:
            question = f"width={width}&" + "&".join(f"page={page}" for page in pages)
            address = f"http://127.0.0.1:{server.server_port}/visit.html?{question}"
            options = [
                "--headless=new",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={tmp_path}",
            ]
            options += ["--no-sandbox"] if os.geteuid() == 0 else []
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            browser = subprocess.Popen(
                [BROWSER, *options, "--remote-debugging-port=0", address], **quiet
            )
            try:
                return reports.get(timeout=SECONDS)
            finally:
                browser.terminate()
                browser.wait()

        yield opened
        server.shutdown()


@pytest.mark.timeout(300)
def test_no_page_is_wider_than_the_window(site: Site, visit, width):
    found = visit(site.pages)
    assert set(found) == set(site.pages)
    assert {report["width"] for report in found.values()} == {width}
    assert {page: report["wider"] for page, report in found.items() if report["wider"]} == {}


@pytest.mark.timeout(300)
def test_a_search_finds_the_page_that_answers(visit):
    [report] = visit(["search.html%3Fq%3Depilogue"]).values()
    assert "how-to/epilogue.html" in [
        link.partition("#")[0].partition("?")[0] for link in report["found"]
    ]
