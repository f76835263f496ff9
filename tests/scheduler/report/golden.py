"""Small pictures of a report and a dashboard, kept to be compared with.

python -m tests.scheduler.report.golden

makes them anew. They are shrunk, so that fonts and versions of the browser change little.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.browsing import chromium, opened
from tests.scheduler.report.made_up import of_records, record
from tests.scheduler.report.served import Server
from tilewright.scheduler.cli.app import run

FOLDER = Path(__file__).with_name("golden")
WINDOWS = {
    "report-narrow-light": (360, "light"),
    "report-wide-dark": (1600, "dark"),
    "dashboard-narrow-dark": (360, "dark"),
    "dashboard-wide-light": (1600, "light"),
}
HEIGHT = 1600  # pixels of a page that are compared, from its top
SHRUNK = 4  # pixels of a page, in each direction, for one of a picture
MEAN, LARGE, SHARE = 3.0, 40, 0.02
"""Difference that is allowed in the mean, of 255; and the share of pixels that may differ by more
than a large one."""


def made(folder: Path) -> Path:
    """A database that is always the same."""
    records = [
        record(n, None if n % 9 == 8 else 1e-5 * (1 + (n * 37 % 101) / 50)) for n in range(60)
    ]
    return of_records(folder / "golden", records)


def shots(browser: Any, folder: Path) -> Iterator[tuple[str, Image.Image]]:
    """Pictures of what is there now, by name."""
    db = made(folder)
    page = db.with_name("report.html")
    with chdir(db.parent):  # its path is on the page
        assert run(["report", "--db", db.name, "--out", page.name]) == 0
        server = Server(db.name)
    addresses = {"report": page.as_uri(), "dashboard": server.address.geturl()}
    try:
        for name, (width, scheme) in WINDOWS.items():
            with opened(browser, addresses[name.partition("-")[0]], width, scheme) as visit:
                clip = {"x": 0, "y": 0, "width": width, "height": HEIGHT}
                yield name, _shrunk(visit.page.screenshot(full_page=True, clip=clip))
    finally:
        server.process.kill()
        server.process.communicate()


def difference(one: Image.Image, other: Image.Image) -> tuple[float, float]:
    """The mean difference of two pictures, of 255, and the share of pixels that differ much."""
    assert one.size == other.size
    between = np.abs(np.asarray(one, dtype=float) - np.asarray(other, dtype=float))
    return float(between.mean()), float((between > LARGE).mean())


def kept(name: str) -> Image.Image:
    """The picture that is kept."""
    return Image.open(FOLDER / f"{name}.png").convert("L")


def _shrunk(content: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(content)).convert("L")
    return picture.resize((picture.width // SHRUNK, picture.height // SHRUNK), Image.Resampling.BOX)


def main() -> None:
    """Make the pictures anew."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, picture in shots(browser, Path(folder)):
            picture.quantize(32).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
