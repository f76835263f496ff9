"""Draws results: how much faster we are than the fastest rival, and how near to the roof.

    python -m experiments.operators.picture OUT FILE [FILE ...]

A line for each case of the files (of one that several have, that of the last), with the fastest
rival's median time over ours on a log axis around 1, which rival it was, and an interval: from its
lower quartile over our upper one to the opposite, or, of results without quartiles, from its least
time over our median to its median over our least. Beside it, our share of a copy's bandwidth or of
the most operations a second, whichever is nearer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import ratios
from experiments.operators.summary import NO_RIVALS, OURS, gflops, of_copy
from experiments.ratios import Panel, Point, Row
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.target import target_from_json

COPY, PEAK = "a copy", "the peak"


@dataclass(frozen=True)
class Dot:
    """A case: ``ratio`` with the ``low`` and ``high`` end of its interval over ``rival``, and our
    ``share`` of the ``roof`` that is nearer, if any is known."""

    name: str
    rival: str
    ratio: float
    low: float
    high: float
    share: float
    roof: str


def dots(files: Sequence[Mapping[str, Any]]) -> list[Dot]:
    """Return the dots of all cases that have a rival, in the order in which they come first."""
    found = {dot.name: dot for results in files for dot in _of(results)}
    return list(found.values())


def _of(results: Mapping[str, Any]) -> Iterator[Dot]:
    for name, row in results["cases"].items():
        times = {who: t for who, t in row["median_s"].items() if who not in NO_RIVALS}
        if not times or OURS not in row["median_s"]:
            continue
        rival = min(times, key=times.__getitem__)
        ours, theirs = _range(row, OURS), _range(row, rival)
        ratio = times[rival] / row["median_s"][OURS]
        low, high = theirs[0] / ours[1], theirs[1] / ours[0]
        shares = {COPY: of_copy(row) or 0.0, PEAK: _of_peak(row, results) or 0.0}
        roof = max(shares, key=shares.__getitem__)
        yield Dot(name, rival, ratio, low, high, shares[roof], roof if shares[roof] else "")


def _range(row: Mapping[str, Any], who: str) -> tuple[float, float]:
    if who in row.get("quartiles_s", {}):
        first, last = row["quartiles_s"][who]
        return first, last
    return row["least_s"][who], row["median_s"][who]


def _of_peak(row: Mapping[str, Any], results: Mapping[str, Any]) -> float | None:
    if peak := results.get("peak_gflops"):
        speed = gflops(row)
        return None if speed is None else speed / peak
    target = target_from_json(results["target"])
    if not isinstance(target, CudaTarget) or "tflops" not in row:
        return None
    return float(row["tflops"][OURS] * 1e12 / target.peak("float16"))


def draw(found: Sequence[Dot], path: Path) -> None:
    """Draw the picture, a line for each."""
    rows = {
        dot.name: Row(
            [Point(dot.ratio, min(dot.low, dot.ratio), max(dot.high, dot.ratio))],
            [dot.rival, f"{100 * dot.share:.0f} % of {dot.roof}" if dot.roof else "-"],
        )
        for dot in found
    }
    panel = Panel("", rows, [("fastest rival", 150), ("nearest roof", 130)])
    title = "Time of the fastest rival over Tilewright's, by case"
    path.write_text(ratios.draw(title, "Fastest rival's time over ours", [panel]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.operators.picture")
    parser.add_argument("out", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    draw(dots([json.loads(path.read_text()) for path in options.files]), options.out)


if __name__ == "__main__":
    main()
