"""Summarises the results: ratios by regime, losses included, and which case comes next."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.gpu_matmul.cases import Case

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
    """Draw one panel a regime, and one bar a case and rival."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    regimes = sorted({regime for row in cases.values() for regime in row["regimes"]})
    figure, axes = pyplot.subplots(
        max(len(regimes), 1), 1, figsize=(12, 2.8 * max(len(regimes), 1)), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for panel, regime in zip(axes[:, 0], regimes, strict=False):
        names = [name for name, row in cases.items() if regime in row["regimes"]]
        rivals = [r for r in RIVALS if any(ratio(cases[name], r) for name in names)]
        for offset, rival in zip((-0.2, 0.2), rivals, strict=False):
            heights = [ratio(cases[name], rival) or 0.0 for name in names]
            places = [i + offset for i in range(len(names))]
            panel.bar(places, heights, width=0.4, label=f"over {rival}")
        panel.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=6)
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set_title(f"{regime}: speed over libraries", fontsize=9)
        panel.legend(fontsize=6)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
