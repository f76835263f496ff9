"""One bar chart: our speed over the fastest library's, a bar a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw(cases: dict[str, dict[str, Any]], path: Path) -> None:
    """Write the chart of all ``cases`` to ``path`` (SVG or PNG by its ending)."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    groups: dict[str, list[tuple[str, float]]] = {}
    for name, row in cases.items():
        shape, group = name.split(" ", 1)
        times = row["best_s"]
        library = min(t for other, t in times.items() if other != "tilewright")
        groups.setdefault(group, []).append((shape, library / times["tilewright"]))
    figure, axes = pyplot.subplots(
        len(groups), 1, figsize=(9, 2.2 * len(groups)), squeeze=False, layout="constrained"
    )
    for panel, (group, bars) in zip(axes[:, 0], groups.items(), strict=True):
        colours = ["#2b7a3d" if ratio >= 1 else "#b5442e" for _, ratio in bars]
        panel.bar([shape for shape, _ in bars], [ratio for _, ratio in bars], color=colours)
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set_title(f"{group}: speed over the fastest library", fontsize=9)
        panel.tick_params(axis="x", labelsize=7, rotation=15)
        panel.tick_params(axis="y", labelsize=7)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
