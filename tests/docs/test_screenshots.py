"""Each picture of the page on reports is made by the one command, and is shown."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_shows_all_pictures_that_the_command_makes():
    spec = spec_from_file_location("screenshots", DOCS / "screenshots.py")
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    names = {*made.PICTURES, *made.OF_FAILURES, "dashboard"}
    kept = {path.stem: path.stat().st_size for path in (DOCS / "_static" / "report").iterdir()}
    page = (DOCS / "how-to" / "read-a-report.md").read_text()
    assert set(kept) == set(re.findall(r"_static/report/([a-z-]+)\.png", page)) == names
    assert all(size < 64 * 1024 for size in kept.values())
