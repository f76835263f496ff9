"""The page of ten operators on a CPU: each text with its number of lines, beside its ratios.

    python -m experiments.attention.page RESULTS.json PAGE.md PICTURE.svg

``RESULTS.json`` comes of ``python -m experiments.operators --target cpu --family texts``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.attention.texts import OPERATORS, lengths_of
from experiments.operators.summary import gflops, ratio

Rows = Mapping[str, Mapping[str, Any]]


def page(cases: Rows) -> str:
    """A table in Markdown: the fastest rival's time over ours at each length."""
    lines = [
        "| operator | over the fastest, by length | GFLOP/s | lines | text |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, operator in OPERATORS.items():
        found = {n: cases[f"{name} {n}"] for n in lengths_of(operator) if f"{name} {n}" in cases}
        ratios = ", ".join(f"{n}: {ratio(row):.2f}" for n, row in found.items())
        speeds = ", ".join(f"{gflops(row):.0f}" for row in found.values())
        text = operator.text(max(lengths_of(operator)))
        written = "<br>".join(f"`{line}`" for line in text.split("\n"))
        count = text.count("\n") + 1
        lines.append(f"| {name} | {ratios or '-'} | {speeds or '-'} | {count} | {written} |")
    return "\n".join(lines) + "\n"


def draw(cases: Rows, path: Path) -> None:
    """Ratios over lengths, a line an operator, around 1 on a log axis."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for panel, decodes in zip(panels, (False, True), strict=True):
        for name, operator in OPERATORS.items():
            points = [
                (n, ratio(cases[f"{name} {n}"]))
                for n in lengths_of(operator)
                if operator.decodes == decodes and f"{name} {n}" in cases
            ]
            if points:
                panel.plot(*zip(*points, strict=True), marker="o", label=name)
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set(xscale="log", yscale="log", xlabel="keys", ylabel="fastest rival over ours")
        if panel.lines[1:]:
            panel.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main() -> int:
    results, table, picture = map(Path, sys.argv[1:])
    found = json.loads(results.read_text())
    peak = f"{found['peak_gflops']:.1f} GFLOP/s of multiply-adds in registers"
    told = f"Measured on {found['date']} by `{found['command']}`; the machine's peak: {peak}.\n\n"
    table.write_text(told + page(found["cases"]))
    draw(found["cases"], picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
