"""The picture of all comparisons: a point a case, one panel a device, one log scale."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from experiments import ratios
from experiments.overview.entries import CPU, GPU
from experiments.ratios import Panel, Point, Row

Points = Mapping[str, Mapping[str, Sequence[float]]]
"""Ratios by device and kind."""

TITLES = {CPU: "CPU", GPU: "H200"}


def kinds(points: Points) -> list[str]:
    """Return the kinds of all devices, those of the first in its order."""
    return list(dict.fromkeys(kind for found in points.values() for kind in found))


def draw(points: Points) -> str:
    """Return the picture's text."""
    panels = [
        Panel(
            TITLES[device],
            {
                kind: Row([Point(r) for r in found], [f"{statistics.geometric_mean(found):.2f}"])
                for kind, found in by_kind.items()
            },
            [("mean", 44)],
        )
        for device, by_kind in points.items()
    ]
    return ratios.draw(
        "Time of the fastest library over Tilewright's, by kind of operator",
        "Fastest library's time over ours",
        panels,
        kinds(points),
    )
