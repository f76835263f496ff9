"""Tables and plots of the committed results: ``python -m experiments.search.page [--out FOLDER]``.

Writes results/page.md and its plots; nothing is measured for them. See README.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.search.results import RESULTS, Found, curve, lines_of, read
from tilewright.scheduler.replay.intervals import TAIL, mean

POINTS = (16, 64, 128, 256)
RUNS = {
    "ours": ("near_batch_8", "evolutionary"),
    "ours, trees alone": ("even_batch_8", "evolutionary"),
    "ours, without evenness": ("opening_batch_8", "now"),
    "ours, opening by equality": ("variants_batch_8", "doubt3"),
    "ours, before": ("variants_batch_8", "main"),
    "genetic": ("others_batch_8", "genetic"),
    "iterated local": ("others_batch_8", "iterated-local"),
    "annealing": ("others_batch_8", "annealing"),
    "random": ("others_batch_8", "random"),
    "Kernel Tuner, genetic": ("kernel_tuner", "kernel_tuner.genetic_algorithm"),
    "ours, batch 64": ("near_batch_64", "evolutionary"),
    "ours, opening not blind, batch 64": ("even_batch_64", "evolutionary"),
    "ours, opening by equality, batch 64": ("batch_64", "doubt2"),
    "ours, before, batch 64": ("batch_64", "main"),
}
"""The file of ``results`` and the search in it, by what the page calls it."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def searches(known: Mapping[str, Found]) -> str:
    """Return a line for each search, means of all spaces."""
    header = ["search", *map(str, POINTS), "reach 99 %", "evaluations to 99 %", "P", "ms a trial"]
    rows = []
    for name, found in known.items():
        means = [f"{found.best[:, :, trials - 1].mean():.3f}" for trials in POINTS]
        needed = found.needed
        median = float(np.median(needed))
        reached = f"{100 * np.isfinite(needed).mean():.1f} %"
        rest = [f"{median:.0f}" if np.isfinite(median) else "", f"{found.performance:.2f}"]
        took = f"{found.milliseconds:.1f}" if np.isfinite(found.milliseconds) else ""
        rows.append([name, *means, reached, *rest, took])
    return table(header, rows)


def spaces(found: Found) -> str:
    """Return a line for each space."""
    rows = [
        [
            name,
            *(f"{best[:, trials - 1].mean():.3f}" for trials in POINTS),
            f"{100 * np.isfinite(needed).mean():.1f} %",
        ]
        for name, best, needed in zip(found.spaces, found.best, found.needed, strict=True)
    ]
    return table(["space", *map(str, POINTS), "reach 99 %"], rows)


def variants(file: str) -> str:
    """Return a line for each search in a file of ``results``, and its gain over the first by
    seeds."""
    names = list(dict.fromkeys(line["search"] for line in lines_of(file)))
    known = {name: read(file, name) for name in names}
    first = known[names[0]].best
    points = [trials for trials in POINTS if trials <= first.shape[2]]
    rows = []
    for name, found in known.items():
        gains = [(found.best - first)[:, :, trials - 1].mean(axis=0) for trials in points]
        cells = [
            f"{found.best[:, :, trials - 1].mean():.3f} {_gain(gain)}"
            for trials, gain in zip(points, gains, strict=True)
        ]
        rows.append([name, *cells, f"{100 * np.isfinite(found.needed).mean():.1f} %"])
    return table(["variant", *map(str, points), "reach 99 %"], rows)


def _gain(values: np.ndarray) -> str:
    found = mean(values)
    if not values.any():
        return ""
    return f"({found.value:+.3f}: {found.low:+.3f} to {found.high:+.3f})"


def regrets(file: str, points: Sequence[int] = (64, 128)) -> str:
    """Return a line for each search and space in a file of ``results``, and for their mean: how
    much longer the best so far takes than the fastest schedule, in percent."""
    rows = []
    for name in dict.fromkeys(line["search"] for line in lines_of(file)):
        found = read(file, name)
        lost = 100.0 / found.best[:, :, [trials - 1 for trials in points]] - 100.0
        for space, runs in [*zip(found.spaces, lost, strict=True), ("mean", lost.mean(axis=0))]:
            each = map(mean, runs.T)
            cells = [f"{e.value:.1f} % ({e.low:.1f} to {e.high:.1f})" for e in each]
            rows.append([name, space.partition(" dtype")[0], *cells])
    return table(["search", "space", *map(str, points)], rows)


def opinions(file: str) -> str:
    """Return a line for each space, in its last evaluation: without a second opinion, with one, the
    gain by seeds, and from nothing where that was replayed."""
    last = {
        (line["space"], line["search"]): np.array([curve(line, g)[-1] for g in line["gains"]])
        for line in lines_of(file)
    }
    rows = []
    for name in dict.fromkeys(space for space, _ in last):
        alone, second, cold = (last.get((name, kind)) for kind in ("warm", "second", "cold"))
        if alone is None or second is None:
            continue
        means = [f"{alone.mean():.3f}", f"{second.mean():.3f} {_gain(second - alone)}"]
        rows.append([name, str(len(alone)), *means, "" if cold is None else f"{cold.mean():.3f}"])
    return table(["space", "seeds", "alone, 64", "with a second opinion, 64", "cold, 64"], rows)


def ranked(results: Mapping[str, Any]) -> str:
    """Return a line for each number of rows that a model has seen."""
    names = ("pairwise", "top1", "recall1")
    rows = [
        [key.removesuffix(" rows"), *(_interval(results[key][name]) for name in names)]
        for key in _row_keys(results)
    ]
    return table(["schedules seen", "pairwise", "top-1", "recall@1 %"], rows)


def warmed(results: Mapping[str, Any], points: Sequence[str]) -> str:
    """Return a line for each space and their mean, after so many evaluations."""
    every = {**results["spaces"], "mean": results["mean"]}
    header = ["space", *(f"{kind}, {n}" for n in points for kind in ("cold", "warm", "gain"))]
    rows = []
    for name, found in every.items():
        cells = []
        for n in points:
            cells += [f"{found[kind][n]['mean']:.3f}" for kind in ("cold", "warm")]
            cells.append(_interval(found["gain"][n]))
        rows.append([name, *cells])
    return table(header, rows)


def _row_keys(results: Mapping[str, Any]) -> list[str]:
    return [key for key in results if key.endswith(" rows")]


def _interval(found: Mapping[str, float]) -> str:
    return f"{found['mean']:.3f} ({found['low']:.3f} to {found['high']:.3f})"


def plot_curves(known: Mapping[str, Found], path: Path) -> None:
    """Best so far by evaluations: means of all spaces with 95 % bands over repeats."""
    from scipy.special import stdtrit

    figure, axes = _figure()
    for name, found in known.items():
        runs = found.best.mean(axis=0)
        trials, middle = np.arange(1, runs.shape[1] + 1), runs.mean(axis=0)
        half = stdtrit(len(runs) - 1, 1 - TAIL) * runs.std(axis=0, ddof=1) / len(runs) ** 0.5
        (drawn,) = axes.plot(trials, middle, label=name, linewidth=1.2)
        axes.fill_between(trials, middle - half, middle + half, color=drawn.get_color(), alpha=0.2)
    axes.set(xlabel="evaluations", ylabel="best so far, of the optimum", ylim=(0.5, 1.0))
    axes.legend(fontsize="small")
    _save(figure, path)


def plot_ranking(results: Mapping[str, Any], path: Path) -> None:
    """Plot how well models rank by how many schedules they have seen, with 95 % bars."""
    figure, axes = _figure()
    rows = [int(key.removesuffix(" rows")) for key in _row_keys(results)]
    for name in ("pairwise", "top1", "recall1"):
        found = [results[f"{n} rows"][name] for n in rows]
        mean = np.array([f["mean"] for f in found])
        bars = [mean - [f["low"] for f in found], [f["high"] for f in found] - mean]
        axes.errorbar(rows, mean, yerr=bars, label=name, marker="o", capsize=3)
    axes.set(xscale="log", xlabel="schedules seen", ylim=(0.0, 1.0), xticks=rows)
    axes.set_xticks(rows, [str(n) for n in rows])
    axes.legend()
    _save(figure, path)


def plot_predicted(known: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Predicted scores of unseen schedules, with their standard deviations, by the measured ones,
    of each space."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.5), layout="constrained")
    every = figure.subplots(2, -(-len(known) // 2), sharex=True, sharey=True)
    for axes, found in zip(every.flat, known, strict=False):
        bars = {"markersize": 2, "elinewidth": 0.4, "alpha": 0.5, "rasterized": True}
        axes.errorbar(found["measured"], found["score"], found["spread"], fmt="o", **bars)
        axes.plot((0, 1), (0, 1), color="black", linewidth=0.8)
        axes.set_title(found["space"], fontsize="small")
    figure.supxlabel("measured: the best time seen in training over the schedule's own")
    figure.supylabel("predicted")
    _save(figure, path)


def _figure() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    return figure, figure.subplots()


def _save(figure: Any, path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "tilewright"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    folder = parser.parse_args().out
    known = {name: read(*place) for name, place in RUNS.items()}
    ranking, warm, shapes = (
        json.loads((RESULTS / f"{name}.json").read_text()) for name in ("ranking", "warm", "shapes")
    )
    plot_curves(known, folder / "curves.svg")
    plot_ranking(ranking, folder / "ranking.svg")
    plot_predicted(lines_of("predicted"), folder / "predicted.svg")
    (folder / "page.md").write_text(
        "# What the committed results say\n\n"
        "Written by `python -m experiments.search.page`; ../README.md explains the words.\n\n"
        f"## Searches\n\nMeans of {len(known['ours'].spaces)} spaces; the median run's "
        f"evaluations.\n\n{searches(known)}\n![best so far](curves.svg)\n\n"
        f"## Ours on each space, batch 8\n\n{spaces(known['ours'])}\n"
        f"## Regret on parts of our own CPU space, batch 8\n\n{regrets('cpu')}\n"
        f"## A Gaussian process for neighbours, batch 8\n\n{variants('near_batch_8')}\n"
        f"## A Gaussian process for all, batch 8\n\n{variants('process_batch_8')}\n"
        f"## Variants, batch 8\n\n{variants('variants_batch_8')}\n"
        f"## Variants, batch 64\n\n{variants('variants_batch_64')}\n"
        f"## Variants with roots for labels, batch 8\n\n{variants('root_batch_8')}\n"
        f"## Variants of warm starts, batch 8\n\n{variants('variants_warm')}\n"
        f"## Variants of warm starts with roots for labels\n\n{variants('root_warm')}\n"
        f"## Warm starts with a second opinion\n\n{opinions('second_opinion')}\n"
        f"## How the cost model ranks\n\n{ranked(ranking)}\n![ranking](ranking.svg)\n\n"
        "Schedules that a model of 256 others has not seen; bars are its own standard deviations."
        "\n\n![predicted against measured](predicted.svg)\n\n"
        f"## Beginning with what siblings' records say\n\n{warmed(warm, ('16', '64'))}\n"
        "## Beginning with what other shapes' records say\n\nRegret: how much longer the best so "
        "far takes than the fastest schedule, of its time; a gain is less.\n\n"
        f"{warmed(shapes, ('16', '48', '128'))}"
    )


if __name__ == "__main__":
    main()
