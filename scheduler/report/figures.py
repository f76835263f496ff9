"""Make the figures of one workload on one target from its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from statistics import median

import numpy as np

from tilewright.measure.busy import why_busy
from tilewright.measure.records.ranking import SEARCH
from tilewright.measure.records.record import Record
from tilewright.scheduler.cli.output import percent, seconds
from tilewright.scheduler.cli.text import counted, plain
from tilewright.scheduler.report.contributions import contributions
from tilewright.scheduler.report.drawing.elements import short
from tilewright.scheduler.report.figure import Axis, Figure, Kind, Picture, Series, series
from tilewright.scheduler.report.levels import mapping
from tilewright.scheduler.report.material import KINDS_OF_ORIGINS, Material, origin_of
from tilewright.scheduler.report.parallel import Parallel, parallel_of
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.nearest import suggestion

LATENCY = Axis("latency", "s", log=True)
MOST_NAMES = 12  # decisions that a figure shows
MOST_REASON = 100  # characters of what a failure says
LEAST_PAIRS = 3  # from which on a correlation is told


def history(material: Material) -> Figure:
    """Show the latency of each trial, by who proposed it, and the best so far of each run."""
    return _history(material, "history", Axis("trial"), lambda place, _: float(place))


def seconds_figure(material: Material) -> Figure:
    """Show the same over the seconds of the runs, one after the other."""
    begins: dict[str, float] = {}
    passed = 0.0
    for key, run in material.runs.items():
        begins[key] = passed - run.started_at
        passed += max(0.0, run.heartbeat - run.started_at)

    def at(place: int, record: Record) -> float:
        begin = begins.get(record.run)
        return float("nan") if begin is None else max(0.0, record.measurement.started_at + begin)

    return _history(material, "seconds", Axis("seconds, run after run"), at)


def _history(
    material: Material, name: str, axis: Axis, at: Callable[[int, Record], float]
) -> Figure:
    kinds = (*KINDS_OF_ORIGINS, "other")
    right: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    again: list[tuple[float, float]] = []
    failed: list[tuple[float, float]] = []
    best: dict[str, list[tuple[float, float]]] = {}
    for place, record in enumerate(material.records, 1):
        x, score = at(place, record), record.measurement.score
        if score is None:
            failed.append((x, 1.0))
        elif record.measurement.round != SEARCH:
            again.append((x, score))
        else:
            right[origin_of(record)].append((x, score))
            known = best.setdefault(record.run, [])
            if record.measurement.ok and (not known or score < known[-1][1]):
                known.append((x, score))
    ends = {key: points[-1] for key, points in best.items() if points}
    shown_series = [
        *(series(kind, Kind.POINTS, points) for kind, points in right.items() if points),
        *([series("compared again", Kind.POINTS, again)] if again else []),
        *([series("failed", Kind.CROSSES, failed)] if failed else []),
        *(
            series(_run_name(place, len(best)), Kind.STEPS, points)
            for place, points in enumerate(best.values(), 1)
            if len(points) > 1 and place <= 2
        ),
        *_lines(material),
    ]
    caption = f"{counted(len(material.records), 'attempt')}, {len(failed)} failed"
    if ends:
        x, least = min(ends.values(), key=lambda point: point[1])
        caption += f"; the fastest of a search took {seconds(least)}"
        caption += f", at trial {x:.0f}" if name == "history" else f", after {x:.4g} s"
        last = max(number for number, _ in material.numbered)
        if name == "history" and last > x:
            caption += f"; none was faster in the {last - x:.0f} after it"
    title = "Convergence over trials" if name == "history" else "Convergence over time"
    return Figure(name, title, caption, axis, LATENCY, tuple(shown_series))


def _run_name(place: int, count: int) -> str:
    return "best so far" if count == 1 else f"best so far, run {place}"


def _lines(material: Material) -> list[Series]:
    """Return the rival and the roof as lines."""
    known = (("NumPy", material.rival), ("roof", material.roof))
    return [Series(name, Kind.RULE, (), (value,)) for name, value in known if value]


def comparison(material: Material) -> Figure:
    """Show all samples of the last comparison of each of the best."""
    last: dict[str, Record] = {}
    for record in material.compared:
        last[record.schedule.key] = record
    ranked = sorted(last.values(), key=lambda record: record.measurement.score or 0.0)
    ranked = ranked[:MOST_NAMES]
    names = tuple(f"{place}. {record.schedule.template}" for place, record in enumerate(ranked, 1))
    samples = [(s, float(y)) for y, r in enumerate(ranked) for s in r.measurement.samples]
    scores = [(r.measurement.score or 0.0, float(y)) for y, r in enumerate(ranked)]
    spread = [
        max(r.measurement.samples) / min(r.measurement.samples) - 1
        for r in ranked[:1]
        if r.measurement.samples and min(r.measurement.samples) > 0
    ]
    caption = f"{counted(len(ranked), 'schedule')}, timed in turns"
    if spread:
        caption += f"; samples of the best differ by {percent(spread[0])}"
    return Figure(
        "comparison",
        "Final comparison",
        caption,
        Axis("time of one call", "s"),
        Axis("schedule", names=names),
        (series("sample", Kind.POINTS, samples), series("score", Kind.POINTS, scores)),
    )


def failures(material: Material) -> Figure:
    """Show the failed attempts by kind, those of the machine too."""
    kinds = Counter(
        str(r.measurement.error_kind) for r in material.records if r.measurement.error_kind
    )
    caption = f"{kinds.total()} of {counted(len(material.records), 'attempt')} failed"
    if kinds:
        caption += f"; {_reason(material, kinds.most_common(1)[0][0])}"
    return _bars("failures", "Failures", caption, "attempts", dict(kinds.most_common(MOST_NAMES)))


def _reason(material: Material, kind: str) -> str:
    """Return what the failures of a kind most often say, in a line."""
    texts = Counter(
        next(iter(r.measurement.error_text.strip().splitlines()), "")
        for r in material.records
        if str(r.measurement.error_kind) == kind
    )
    text, count = texts.most_common(1)[0]
    words = f": {short(plain(text), MOST_REASON)}" if text else ""
    return f"{count} of them by {kind}{words}"


def predicted(material: Material) -> Figure:
    """Show what the search predicted of each trial against what was measured."""
    known = [
        (r.proposal.mean, r.measurement.score)
        for r in material.searched
        if r.proposal and r.proposal.mean is not None and r.measurement.score is not None
    ]
    least = min((score for _, score in known), default=1.0)
    points = [(mean, least / score) for mean, score in known]
    caption = f"{counted(len(points), 'prediction')} before measuring"
    if (found := rank_correlation(points)) is not None:
        caption += f"; rank correlation {found:.2f}"
    return Figure(
        "predicted",
        "Predicted against measured",
        caption,
        Axis("predicted speed, of the fastest known then"),
        Axis("measured speed, of the fastest"),
        (series("trial", Kind.POINTS, points),),
    )


def rank_correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Return Spearman's rank correlation; None of few pairs, or where one side does not vary."""
    if len(points) < LEAST_PAIRS:
        return None
    one, other = (_ranks([point[side] for point in points]) for side in (0, 1))
    if one.std() == 0 or other.std() == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Return the rank of each value; equal ones share the mean of theirs."""
    _, where, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: np.ndarray = ends - (counts - 1) / 2
    return means[where]


def decisions(material: Material) -> Figure:
    """Show which decisions separate fast schedules from slow ones."""
    found = [each for each in material.separations if each.explained > 0][:MOST_NAMES]
    caption = (
        f"{counted(len(found), 'decision')} that goes with speed"
        if len(found) == 1
        else (f"{len(found)} decisions that go with speed")
    )
    if found:
        first = found[0]
        caption += (
            f"; {percent(first.share_of_fastest)} of the fastest tenth chose "
            f"{first.decision}={first.value}, {percent(first.share_of_all)} of all"
        )
    whole = len({r.schedule.template for r in material.searched}) > 1
    names = (each.decision if whole else each.decision.rpartition(".")[2] for each in found)
    values = {
        f"{name}={each.value}": each.explained for name, each in zip(names, found, strict=True)
    }
    title = "Decisions of the fastest tenth"
    return _bars("decisions", title, caption, "explained variance of log latency", values, "%")


def parallel(material: Material) -> Parallel:
    """Show each trial as a line through its latency and the decisions that matter most."""
    explained: dict[str, float] = {}
    for each in material.separations:
        name = each.decision.rpartition(".")[2]
        explained[name] = max(each.explained, explained.get(name, 0.0))
    return parallel_of(material, explained)


def roofline(material: Material) -> Figure:
    """Show the speed of each trial over its operations per byte of main memory, below the roofs of
    arithmetic and of each level of memory."""
    points, peaks = _operations(material), material.peaks
    roofs: list[Series] = []
    if points and peaks is not None:
        low, high = min(x for x, _ in points) / 2, max(x for x, _ in points) * 2
        bandwidths = (
            ("main memory", peaks.main_bandwidth),
            ("middle memory", peaks.middle_bandwidth),
            ("near memory", peaks.near_bandwidth),
        )
        for name, bandwidth in bandwidths:
            bend = min(max(peaks.flops / bandwidth, low), high)
            line = [(x, min(peaks.flops, x * bandwidth) / 1e9) for x in (low, bend, high)]
            roofs.append(series(name, Kind.LINE, line))
    caption = f"{counted(len(points), 'trial')} that ran"
    if material.of_roof is not None:
        caption += f"; the best has {percent(material.of_roof)} of the speed of its roof"
    return Figure(
        "roofline",
        "Roofline",
        caption,
        Axis("operations per byte of main memory", log=True),
        Axis("10^9 operations a second", log=True),
        (series("trial", Kind.POINTS, points), *roofs),
    )


def _operations(material: Material) -> list[tuple[float, float]]:
    """Return the operations per byte and a second of each trial that ran."""
    space, flops = material.space, material.workload.flops
    ran = [r for r in material.searched if r.measurement.score]
    if space is None or not flops:
        return []
    now = [r for r in ran if r.template_version in space.versions]
    rows = material.rows([r.schedule for r in now])
    placed = [(r, row) for r, row in zip(now, rows, strict=True) if row is not None]
    if not placed:
        return []
    found = space.quantities(np.stack([row for _, row in placed]))
    bytes_moved = np.asarray(found["main_bytes"], dtype=float)
    least = float(material.workload.least_bytes)
    moved = np.where(np.isfinite(bytes_moved) & (bytes_moved > 0), bytes_moved, least)
    return [
        (flops / float(count), flops / (r.measurement.score or 1.0) / 1e9)
        for (r, _), count in zip(placed, moved, strict=True)
    ]


def time(material: Material) -> Figure:
    """Show what the time went to."""
    spent: dict[str, float] = {}
    for record in material.records:
        m = record.measurement
        spent["compiling"] = spent.get("compiling", 0.0) + m.build_seconds
        ran = "comparing the best" if m.round != SEARCH else "trials that failed"
        ran = "trials that ran" if m.round == SEARCH and m.score is not None else ran
        spent[ran] = spent.get(ran, 0.0) + m.run_seconds
    spent = {name: value for name, value in spent.items() if value > 0}
    spent = dict(sorted(spent.items(), key=lambda item: -item[1]))
    caption = f"{sum(spent.values()):.4g} s of work in {material.seconds:.4g} s of runs"
    return _bars("time", "Where the time went", caption, "seconds", spent)


def quiet(material: Material) -> Figure:
    """Show how long the reference kernel took beside each trial, over its least."""
    known = [
        (place, median(r.measurement.reference_samples), bool(why_busy(r.measurement)))
        for place, r in enumerate(material.records, 1)
        if r.measurement.reference_samples
    ]
    least = min((value for _, value, _ in known), default=1.0) or 1.0
    busy = sum(is_busy for *_, is_busy in known)
    caption = f"{counted(len(known), 'attempt')} beside a reference kernel"
    caption += f", {busy} on a busy machine"
    return Figure(
        "quiet",
        "How quiet the machine was",
        caption,
        Axis("attempt"),
        Axis("reference kernel, longer than at least", "%"),
        tuple(
            series(
                name, Kind.POINTS, [(float(p), v / least - 1) for p, v, b in known if b is which]
            )
            for name, which in (("quiet", False), ("busy", True))
        ),
    )


FIGURES: dict[str, Callable[[Material], Picture]] = {
    "history": history,
    "seconds": seconds_figure,
    "comparison": comparison,
    "roofline": roofline,
    "decisions": decisions,
    "parallel": parallel,
    "model": contributions,
    "predicted": predicted,
    "failures": failures,
    "time": time,
    "quiet": quiet,
    "mapping": mapping,
}
"""The figures of a workload, by name, in the order of the page."""


def check_figure(name: str, known: Collection[str]) -> None:
    """Raise :class:`InputError` if none of the ``known`` figures has this name."""
    if name not in known:
        near, allowed = suggestion(name, known), ", ".join(known)
        raise InputError(f"figure {shown(name)} is unknown; {near}allowed: {allowed}")


def _bars(
    name: str, title: str, caption: str, label: str, values: dict[str, float], unit: str = ""
) -> Figure:
    places = tuple(float(place) for place in range(len(values)))
    bars = Series(title, Kind.BARS, tuple(map(float, values.values())), places)
    return Figure(name, title, caption, Axis(label, unit), Axis("", names=tuple(values)), (bars,))
