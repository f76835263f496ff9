"""The table of attention on a GPU, and a picture over lengths.

    python -m experiments.attention.gpu_page PICTURE.svg RESULTS.json [MORE.json ...]

Prints Markdown. ``RESULTS.json`` comes of ``python -m experiments.attention``; of a case that
several files have, the first counts.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.attention.picture import TITLES, draw

LIBRARIES = ("cudnn", "flash")
Cases = Mapping[str, Mapping[str, Any]]


def best(row: Mapping[str, Any], names: Iterable[str]) -> float | None:
    """Return the least median of some calls, in seconds."""
    return min((row["median_s"][n] for n in names if n in row["median_s"]), default=None)


def ratios(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the fastest library's time over ours, and compiled FlexAttention's."""
    ours = row["median_s"][row["best"]]
    found = (best(row, LIBRARIES), best(row, ("flex",)))
    library, flex = (time / ours if time else None for time in found)
    return library, flex


def table(cases: Cases) -> str:
    """Return a line a case, and geometric means at the end."""
    lines = [
        "| case | us | TFLOP/s | template | cuDNN | flash | Flex | over libraries | over Flex |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in cases.items():
        ours, rate = row["median_s"][row["best"]], row["tflops"]
        template = row["best"].split()[0]
        others = (f"{rate[n]:.1f}" if n in rate else "-" for n in (*LIBRARIES, "flex"))
        shown = (f"{r:.2f}" if r else "-" for r in ratios(row))
        cells = [name, f"{1e6 * ours:.1f}", f"{rate[row['best']]:.1f}", template, *others, *shown]
        lines.append(f"| {' | '.join(cells)} |")
    for number, rival in enumerate(("libraries", "Flex")):
        found = [r for row in cases.values() if (r := ratios(row)[number])]
        mean = math.exp(sum(map(math.log, found)) / len(found))
        words = f"geometric mean {mean:.2f} of {len(found)} cases, least {min(found):.2f}"
        lines.append(f"\nOver {rival}: {words}.")
    return "\n".join(lines) + "\n"


def panels(cases: Cases) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Ratios over lengths by form and rival: of all positions, and of one more."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {title: {} for title in TITLES}
    for name, row in cases.items():
        length = int(re.search(r"(?:(1)x)?(\d+) \w+$", name)[2])  # type: ignore[index]
        form = name.partition(" d")[0] + " float16" * name.endswith(" float16")
        for rival, over in zip(("libraries", "Flex"), ratios(row), strict=True):
            if over:
                panel = found[TITLES[" 1x" in name]]
                panel.setdefault(f"{form}, {rival}", []).append((length, over))
    return found


def main() -> int:
    picture, *files = map(Path, sys.argv[1:])
    cases: dict[str, Any] = {}
    for file in files:
        for name, row in json.loads(file.read_text())["cases"].items():
            cases.setdefault(name, row)
    draw(panels(cases), picture, "rival's time over ours")
    print(table(cases))
    return 0


if __name__ == "__main__":
    sys.exit(main())
