"""Summarises the results: ratios by operator, losses included."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

OURS = "tilewright"
FAST = "tilewright, fast"
"""The name, in a rival's place, of our kernel under ``numerics="fast"``, where that allows more
templates."""
COPY = "copy"
"""The name, in a rival's place, of a copy that moves the same bytes."""
UNTUNED = "untuned"
"""The name, in a rival's place, of our kernel of a schedule that nobody measured."""
OF_ARRAYS, COPY_OF_ARRAYS = "tilewright, arrays", "copy, arrays"
"""Names, in rivals' places, of our kernel called on arrays of NumPy, and a copy of such ones."""
COPIES = {COPY: OURS, COPY_OF_ARRAYS: OF_ARRAYS}
"""Our call beside each copy: the one on arrays of the same kind, since looking at arrays is most of
a call on few elements."""
NO_RIVALS = (OURS, FAST, COPY, UNTUNED, OF_ARRAYS, COPY_OF_ARRAYS)


def ratio(row: Mapping[str, Any], fast: bool = False) -> float | None:
    """Return the fastest rival's median time over ours, in the ``fast`` mode if it is wanted: above
    1.0 we are faster."""
    times = row["median_s"]
    ours = times.get(OURS)
    if fast:
        ours = times.get(FAST, ours)
    rivals = [t for name, t in times.items() if name not in NO_RIVALS]
    return float(min(rivals) / ours) if rivals and ours is not None else None


def of_copy(row: Mapping[str, Any]) -> float | None:
    """Return our share of the bandwidth of a copy, of several the least."""
    times = row["median_s"]
    pairs = [(c, ours) for c, ours in COPIES.items() if {c, ours} <= set(times)]
    return min((float(times[c] / times[ours]) for c, ours in pairs), default=None)


def of_tuned(cases: Mapping[str, Mapping[str, Any]]) -> list[float]:
    """Return the speed of our untuned kernel over the tuned one's, for each case that has both."""
    times = [row["median_s"] for row in cases.values()]
    return [each[OURS] / each[UNTUNED] for each in times if {OURS, UNTUNED} <= set(each)]


def gflops(row: Mapping[str, Any]) -> float | None:
    """Return ours, in GFLOP/s, if there are sums of products."""
    return row["flops"] / row["median_s"][OURS] / 1e9 if row.get("flops") else None


def spread(times: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """Summarise timed calls for a row of the results: medians, least times and both quartiles, in
    seconds, by name."""
    return {
        "median_s": {name: statistics.median(t) for name, t in times.items()},
        "least_s": {name: min(t) for name, t in times.items()},
        "quartiles_s": {
            name: statistics.quantiles(t, n=4, method="inclusive")[::2]
            for name, t in times.items()
            if len(t) > 1
        },
    }


def summarise(cases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return, per operator, cases, geometric mean and least over the fastest rival, and of a
    copy."""
    found: dict[str, Any] = {}
    for operator in dict.fromkeys(row["operator"] for row in cases.values()):
        rows = {name: row for name, row in cases.items() if row["operator"] == operator}
        copies = [r for row in rows.values() if (r := of_copy(row)) is not None]
        if overall := figures(rows):
            found[operator] = overall | ({"least_of_copy": min(copies)} if copies else {})
    return found


def figures(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the cases, geometric mean and least over the fastest rival, and the names of the
    losses; empty where no case has both times."""
    ratios = {name: r for name, row in rows.items() if (r := ratio(row)) is not None}
    if not ratios:
        return {}
    return {
        "cases": len(ratios),
        "geomean": statistics.geometric_mean(ratios.values()),
        "least": min(ratios.values()),
        "losses": sorted(name for name, r in ratios.items() if r < 1),
    }


def line(name: str, row: Mapping[str, Any]) -> str:
    """Return one case in a line."""
    times = " ".join(f"{who} {1e6 * t:.1f}" for who, t in row["median_s"].items())
    over, copied = ratio(row), of_copy(row)
    against = "no time" if over is None else f"{over:.3f} x the fastest"
    share = "" if copied is None else f", {copied:.3f} of a copy"
    return f"{name:34s} {against}{share}, us: {times}"


def against(cases: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return, per rival, geometric mean and least of its median time over ours, over all cases."""
    found: dict[str, list[float]] = {}
    for row in cases.values():
        times = row["median_s"]
        for name, seconds in times.items():
            if OURS in times and name not in NO_RIVALS:
                found.setdefault(name, []).append(seconds / times[OURS])
    return {
        name: {"geomean": statistics.geometric_mean(ratios), "least": min(ratios)}
        for name, ratios in found.items()
    }


def table(results: Mapping[str, Any]) -> str:
    """Return all cases as a table of Markdown: median microseconds, and ratios over ours; losses in
    words below it."""
    cases = results["cases"]
    rivals = list(dict.fromkeys(name for row in cases.values() for name in row["median_s"]))
    rivals = [name for name in rivals if name != OURS]
    lines = [
        f"Measured on {results['date']} by `{results['command']}`; medians in microseconds.",
        *_facts(results),
        "",
        "| case | ours | " + " | ".join(rivals) + " | fastest over ours | of a copy | GFLOP/s |",
        "| --- " * (len(rivals) + 5) + "|",
    ]
    for name, row in cases.items():
        cells = [_microseconds(row["median_s"].get(who)) for who in (OURS, *rivals)]
        cells += ["-" if r is None else f"{r:.2f}" for r in (ratio(row), of_copy(row))]
        speed = gflops(row)
        cells.append("-" if speed is None else f"{speed:.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append("")
    for name, figures in against(cases).items():
        lines.append(
            f"Over {name}: {figures['geomean']:.2f} geometric mean, {figures['least']:.2f} least."
        )
    if any(FAST in row["median_s"] for row in cases.values()):
        for words, fast in (("strict", False), ("fast", True)):
            own = [r for row in cases.values() if (r := ratio(row, fast)) is not None]
            mean = statistics.geometric_mean(own)
            over = f"{mean:.2f} over the fastest, {min(own):.2f} least"
            lines.append(f'Under numerics="{words}": {over}.')
    if shares := of_tuned(cases):
        mean, least = statistics.geometric_mean(shares), min(shares)
        lines.append(f"Untuned: {mean:.2f} as fast as tuned in geometric mean, {least:.2f} least.")
    losses = sorted(n for n, row in cases.items() if (ratio(row) or 1) < 1)
    lines.append(f"Losses: {', '.join(losses) or 'none'}.")
    return "\n".join(lines) + "\n"


def _facts(results: Mapping[str, Any]) -> list[str]:
    """Return the lines on the machine, and on the settings of the rivals."""
    if "peak_gflops" not in results:
        return []
    peak = f"{results['peak_gflops']:.1f} GFLOP/s of multiply-adds in registers"
    return ["", f"The machine's peak: {peak}. MKL: {results['mkl']}."]


def _microseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e6 * seconds:.1f}"
