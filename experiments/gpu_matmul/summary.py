"""Summarises the results: ratios by regime, losses included, and which case comes next."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import ratios
from experiments.gpu_matmul.cases import Case
from experiments.ratios import Panel, Point, Row

RIVALS = ("cublas", "triton", "compiled")


FASTEST = "fastest"
"""The name, in a rival's place, of the fastest of all rivals."""

READING = "reading"
"""The name, in a rival's place, of the reading of its weight, which none can beat."""


def ratio(row: Mapping[str, Any], rival: str) -> float | None:
    """The rival's median time over ours: above 1.0 we are faster."""
    times = row["median_s"]
    rivals = [times[name] for name in (RIVALS if rival == FASTEST else [rival]) if name in times]
    if not rivals or "tilewright" not in times:
        return None
    return float(min(rivals) / times["tilewright"])


def summarise(cases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return, per regime and rival, cases, geometric mean, least, and the names of the losses."""
    regimes: dict[str, list[str]] = {}
    for name, row in cases.items():
        for regime in row["regimes"]:
            regimes.setdefault(regime, []).append(name)
    summary: dict[str, Any] = {}
    for regime, names in regimes.items():
        for rival in (*RIVALS, FASTEST, READING):
            known = {n: r for n in names if (r := ratio(cases[n], rival)) is not None}
            if known:
                summary.setdefault(regime, {})[rival] = {
                    "cases": len(known),
                    "geomean": statistics.geometric_mean(known.values()),
                    "least": min(known.values()),
                    "losses": sorted((n for n, r in known.items() if r < 1), key=known.__getitem__),
                }
    return summary


def in_turn(cases: Sequence[Case], done: Mapping[str, Mapping[str, Any]]) -> list[Case]:
    """Cases by the seconds they were tuned so far, the least first: a later call goes on."""
    return sorted(cases, key=lambda case: done.get(case.name, {}).get("tuning_seconds", 0.0))


def draw(cases: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw a point for each case and regime, beside its fastest rival."""
    rows = {}
    for name, row in cases.items():
        times = {who: row["median_s"][who] for who in RIVALS if who in row["median_s"]}
        if (over := ratio(row, FASTEST)) is not None:
            rival = min(times, key=times.__getitem__)
            for regime in row["regimes"]:
                rows[f"{regime}: {name}"] = Row([Point(over)], [f"over {rival}"])
    title = "Matrix products on a GPU: the fastest rival's time over ours"
    panel = Panel("", rows, [("fastest rival", 110)])
    path.write_text(ratios.draw(title, "Fastest rival's time over ours", [panel]))
