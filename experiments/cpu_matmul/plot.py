"""One picture: the fastest library's time over ours, a point a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import ratios
from experiments.ratios import Panel, Point, Row


def draw(cases: dict[str, dict[str, Any]], path: Path) -> None:
    """Write the picture of all ``cases`` to ``path``, as SVG."""
    rows = {}
    for name, row in cases.items():
        times = row["best_s"]
        library = min((who for who in times if who != "tilewright"), key=times.__getitem__)
        rows[name] = Row([Point(times[library] / times["tilewright"])], [library])
    title = "Matrix products on a CPU: the fastest library's time over ours"
    panel = Panel("", rows, [("fastest library", 110)])
    path.write_text(ratios.draw(title, "Fastest library's time over ours", [panel]))
