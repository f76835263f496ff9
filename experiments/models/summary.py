"""Summarises a model's rows: sums over its operators, weighted by how often each occurs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.operators.summary import COPIES, NO_RIVALS, OURS

ALONE = "alone"
"""The name, in a rival's place, of a library's call without what follows it, which computes
less."""
Row = Mapping[str, Any]


def rivals(row: Row) -> Mapping[str, float]:
    """Return the median seconds of those that compute what we do."""
    return {n: t for n, t in row["median_s"].items() if n not in (*NO_RIVALS, ALONE)}


def ratio(row: Row) -> float | None:
    """Return the fastest rival's median time over ours; None where we have none."""
    ours = row["median_s"].get(OURS)
    return min(rivals(row).values()) / ours if ours else None


def summarise(rows: Mapping[str, Row]) -> dict[str, Any]:
    """Return the sums in seconds by ``count``, of those that have a time of ours: ours, eager
    torch, compiled torch, and the fastest of each operator; how much more than ours these are; and
    losses by name.

    Where compiling failed, eager torch stands for it.
    """
    timed = {name: row for name, row in rows.items() if OURS in row["median_s"]}
    sums = {OURS: 0.0, "eager": 0.0, "compiled": 0.0, "fastest": 0.0}
    for row in timed.values():
        times, count = row["median_s"], row["count"]
        sums[OURS] += count * times[OURS]
        sums["eager"] += count * times["eager"]
        sums["compiled"] += count * times.get("compiled", times["eager"])
        sums["fastest"] += count * min(rivals(row).values())
    lost = {name: found for name, row in timed.items() if (found := ratio(row) or 1.0) < 1.0}
    return {
        "operators": len(timed),
        "seconds": sums,
        "ratios": {n: sums[n] / sums[OURS] for n in sums if n != OURS and timed},
        "losses": dict(sorted(lost.items(), key=lambda item: item[1])),
        "untimed": sorted(set(rows) - set(timed)),
    }


def line(model: str, found: Mapping[str, Any], distinct: int) -> str:
    """Return a model in a line."""
    ratios = " ".join(f"{name} {value:.3f}" for name, value in found["ratios"].items())
    ours = 1e6 * found["seconds"][OURS]
    return f"{model}: {found['operators']} of {distinct} operators, ours {ours:.1f} us, {ratios}"


def table(results: Mapping[str, Any]) -> str:
    """Return all models, and each one's operators, as tables of Markdown; times in microseconds."""
    lines = [
        f"Measured on {results['date']} by `{results['command']}`; medians in microseconds.",
        "",
        "| model, batch | operators | ours | eager | compiled | fastest of each "
        "| over eager | over compiled | over the fastest |",
        "| --- " * 9 + "|",
    ]
    for model, entry in results["models"].items():
        found = entry["summary"]
        cells = [f"{1e6 * t:.1f}" for t in found["seconds"].values()]
        cells += [f"{found['ratios'].get(n, 0.0):.2f}" for n in ("eager", "compiled", "fastest")]
        done = f"{found['operators']} of {entry['distinct']}"
        lines.append(f"| {model} | {done} | {' | '.join(cells)} |")
    for model, entry in results["models"].items():
        lines += ["", *_operators(model, entry)]
    return "\n".join(lines) + "\n"


def _operators(model: str, entry: Mapping[str, Any]) -> list[str]:
    rows = entry["operators"]
    names = list(dict.fromkeys(name for row in rows.values() for name in row["median_s"]))
    names = [OURS, *(name for name in names if name not in {*COPIES, *COPIES.values()})]
    lines = [
        f"### {model}",
        "",
        f"| operator | times | {' | '.join(names)} | fastest over ours |",
        "| --- " * (len(names) + 3) + "|",
    ]
    for name, row in rows.items():
        times = (row["median_s"].get(who) for who in names)
        cells = ["-" if t is None else f"{1e6 * t:.1f}" for t in times]
        over = "-" if ratio(row) is None else f"{ratio(row):.2f}"
        lines.append(f"| {name} | {row['count']} | {' | '.join(cells)} | {over} |")
    return lines
