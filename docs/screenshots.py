"""Make the pictures of the page on reports: of the report of a shipped suite, and of the dashboard.

    python docs/screenshots.py [--db FILE] [--seconds 300] [--out docs/_static/report]

Tunes the suite first, unless a database is named. It needs Chromium, and Playwright of the extra
``dev``; ``make screenshots`` runs it.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browsing import chromium, opened  # noqa: E402  (of this repository)
from tests.scheduler.report.made_up import of_records, record  # noqa: E402
from tilewright.measure.database import Database  # noqa: E402
from tilewright.measure.records.measurement import ErrorKind  # noqa: E402

SUITE = "bert-base"
WIDTH = 1000
COLOURS = 64  # of a picture, which keeps it small
MOST_HEIGHT = 900  # pixels of a picture


def figure(name: str) -> Callable[[Any], Any]:
    """Return a function that finds a figure on a page: that of the workload with most trials."""
    most = """() => [...document.querySelectorAll("section.workload")].sort((a, b) =>
        b.querySelector("svg").dataset.points - a.querySelector("svg").dataset.points)[0].id"""
    return lambda page: page.locator(f"#{page.evaluate(most)} figure[data-figure={name}]")


def failures(page: Any) -> Any:
    """Open the most frequent kind of failure, and return its text."""
    kind = page.locator("details.failure").first
    kind.locator("summary").click()
    return kind


PICTURES: dict[str, Callable[[Any], Any]] = {
    "layers": lambda page: page.locator("details.job").first,
    "quiet": figure("quiet"),
    "decisions": figure("decisions"),
    "history": figure("history"),
    "gains": lambda page: page.locator("#gains .figures"),
}
"""Pictures of the suite's report by name, each with a function that finds its part of the page."""
OF_FAILURES = {"failures": figure("failures"), "failure-text": failures}
"""Pictures of a report of planted failures: those of a suite differ from machine to machine."""
PLANTED = (
    (ErrorKind.REJECTED, 9, "68 bytes of registers are spilled; allowed: none"),
    (ErrorKind.COMPILE, 4, "ptxas error: Entry function uses too much shared data (0x3a000 bytes)"),
    (ErrorKind.WRONG, 2, "y[17, 3] is 0.25, and may be from 0.4998 to 0.5002"),
    (ErrorKind.TIMEOUT, 1, "no answer within 10 s"),
)
"""Kinds of failure, how often each occurs, and its text."""


def planted(folder: Path) -> Path:
    """Return a database of a run of which a third failed, in several ways."""
    kinds = [(kind, text) for kind, count, text in PLANTED for _ in range(count)]
    failed = [record(n, None, kind=kind, text=text) for n, (kind, text) in enumerate(kinds)]
    right = [record(len(kinds) + n, 1e-3 * (1 + n % 11 / 7)) for n in range(2 * len(kinds))]
    return of_records(folder / "failed", [*failed, *right])


def command(*words: str) -> list[str]:
    """Return the command line of this checkout's program."""
    return [sys.executable, "-m", "tilewright", *words]


@contextmanager
def dashboard(db: Path) -> Iterator[str]:
    """Serve a dashboard as long as the block lasts; its address."""
    words = command("dashboard", "--db", db.name)
    server = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=db.parent)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().decode().split()[1]
    finally:
        server.kill()
        server.wait()


def suite(folder: Path, known: Path | None, seconds: float) -> Path:
    """Return a database of the suite: a copy of one that is known, or tuned for so many seconds."""
    db = folder / f"{SUITE}.db"
    if known is not None:
        with Database(known, create=False) as source, Database(db) as copy:
            copy.merge(source)
        return db
    words = ("tune", "--suite", SUITE, "--seconds", f"{seconds:g}", "--db", str(db))
    subprocess.run(command(*words), check=True)
    return db


def save(part: Any, path: Path) -> None:
    """Write a picture of a part of a page, without empty margins, with few colours, and no higher
    than is read."""
    from PIL import Image, ImageChops

    part.scroll_into_view_if_needed()
    picture = Image.open(io.BytesIO(part.screenshot())).convert("RGB")
    ground = Image.new("RGB", picture.size, picture.getpixel((0, 0)))
    left, top, right, bottom = ImageChops.difference(picture, ground).getbbox()
    picture = picture.crop((left, top, right, min(bottom, top + MOST_HEIGHT)))
    picture.quantize(COLOURS).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python docs/screenshots.py")
    parser.add_argument("--db", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "_static" / "report")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        db = suite(folder, options.db, options.seconds)
        for known, pictures in ((db, PICTURES), (planted(folder), OF_FAILURES)):
            report = folder / "report.html"
            subprocess.run(command("report", "--db", str(known), "--out", str(report)), check=True)
            for picture, find in pictures.items():
                with opened(browser, report.as_uri(), WIDTH) as visit:
                    save(find(visit.page), options.out / f"{picture}.png")
        with dashboard(db) as address, opened(browser, address, WIDTH, "dark") as visit:
            save(visit.page.locator("body"), options.out / "dashboard.png")


if __name__ == "__main__":
    main()
