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

from experiments.attention.picture import TITLES, draw
from experiments.attention.texts import OPERATORS, lengths_of
from experiments.operators.summary import gflops, ratio

Rows = Mapping[str, Mapping[str, Any]]


def page(cases: Rows) -> str:
    """Return a table in Markdown: the fastest rival's time over ours at each length."""
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


def panels(cases: Rows) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Ratios over lengths by operator: of all positions, and of one more."""
    return {
        title: {
            name: points
            for name, operator in OPERATORS.items()
            if operator.decodes == decodes and (points := _points(cases, name, operator))
        }
        for decodes, title in enumerate(TITLES)
    }


def _points(cases: Rows, name: str, operator: Any) -> list[tuple[int, float]]:
    """Return the lengths of an operator at which it was measured beside rivals, and its ratios."""
    rows = {n: cases.get(f"{name} {n}") for n in lengths_of(operator)}
    found = {n: ratio(row) for n, row in rows.items() if row is not None}
    return [(n, over) for n, over in found.items() if over is not None]


def main() -> int:
    results, table, picture = map(Path, sys.argv[1:])
    found = json.loads(results.read_text())
    peak = f"{found['peak_gflops']:.1f} GFLOP/s of multiply-adds in registers"
    told = f"Measured on {found['date']} by `{found['command']}`; the machine's peak: {peak}.\n\n"
    table.write_text(told + page(found["cases"]))
    draw(panels(found["cases"]), picture, "fastest rival's time over ours")
    return 0


if __name__ == "__main__":
    sys.exit(main())
