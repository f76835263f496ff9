"""A picture of two panels: how much faster we are than rivals, for each form and number of keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments import ratios
from experiments.ratios import Panel, Point, Row

TITLES = ("all positions", "one more position")
Lines = Mapping[str, Sequence[tuple[int, float]]]
"""Lengths and ratios by label."""


def draw(panels: Mapping[str, Lines], path: Path, words: str) -> None:
    """Draw the ratios of each panel by its title; ``words`` say what the ratios are of."""
    drawn = [
        Panel(
            title,
            {
                f"{label}, {length} keys": Row([Point(over)], [f"{over:.2f}"])
                for label, points in lines.items()
                for length, over in points
            },
            [("ratio", 44)],
        )
        for title, lines in panels.items()
    ]
    path.write_text(ratios.draw(f"Attention: {words}", words, drawn))
