"""A picture of two panels: how much faster we are than rivals, over the number of keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

Lines = Mapping[str, Sequence[tuple[int, float]]]
"""Lengths and ratios by label."""


def draw(panels: Sequence[Lines], path: Path, words: str, size: int) -> None:
    """Draw the lines of each panel around 1 on log axes; ``words`` say what the ratios are of,
    labels are of so many points."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(9, 3.6), layout="constrained")
    for panel, lines in zip(axes, panels, strict=True):
        for label, points in lines.items():
            panel.plot(*zip(*points, strict=True), marker="o", label=label)
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set(xscale="log", yscale="log", xlabel="keys", ylabel=words)
        if lines:
            panel.legend(fontsize=size)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
