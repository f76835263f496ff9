"""Writes the page and the picture of all comparisons with libraries.

python -m experiments.overview [--docs FOLDER]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from experiments.overview.entries import ENTRIES
from experiments.overview.page import page
from experiments.overview.picture import Points, draw
from experiments.overview.reading import read

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE = "explained/results.md", "_static/speedup.svg"


def points() -> Points:
    """Return the points that are drawn: ratios by device and kind."""
    found: dict[str, dict[str, list[float]]] = {}
    for entry in ENTRIES:
        if entry.drawn and not entry.again:
            ratios = found.setdefault(entry.device, {}).setdefault(entry.kind, [])
            ratios += [case.ratio for case in read(entry).points]
    return found


def texts() -> Mapping[str, str]:
    """Return each file's text, by its place in the documentation."""
    return {PAGE: page(ENTRIES), PICTURE: draw(points())}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.overview")
    parser.add_argument("--docs", type=Path, default=DOCS)
    folder: Path = parser.parse_args().docs
    for name, text in texts().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
