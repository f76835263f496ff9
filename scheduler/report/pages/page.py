"""Write a report as one HTML file that loads nothing, from anywhere.

Jinja2 escapes all that comes from a database. The content security policy allows only the style and
the script of the page itself, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.measure.busy import why_busy
from tilewright.measure.estimates import Estimate
from tilewright.measure.records.record import Record
from tilewright.scheduler.cli.output import clock, estimated, moment, percent, seconds, times
from tilewright.scheduler.cli.pasting import best_call
from tilewright.scheduler.cli.text import counted, plain, without_passwords
from tilewright.scheduler.extras import extra
from tilewright.scheduler.garbage import uncollected
from tilewright.scheduler.report.comparing import Comparison, ratios
from tilewright.scheduler.report.drawing.elements import COLOURS
from tilewright.scheduler.report.drawing.svg import FIGURE_STYLE, drawn
from tilewright.scheduler.report.figure import Picture
from tilewright.scheduler.report.figures import FIGURES
from tilewright.scheduler.report.graphs import Graph, Region, graphs_of
from tilewright.scheduler.report.jobs import WHOLE, Job, Layer, jobs_of
from tilewright.scheduler.report.material import Material
from tilewright.scheduler.report.pages.live import Live
from tilewright.scheduler.report.pages.template import FOLDER, template, trusted
from tilewright.scheduler.report.source import plain_lines, source_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.version import VERSION

SCRIPTS = ("report.js", "brush.js", "source.js")
MOST_JOBS = 20  # the latest, of which a page has a table
MOST_GRAPHS = 20  # of compiled models, the latest, of which a page has a table
MOST_LAYERS = 50  # of a job or a graph, those that save most
MOST_SECTIONS = 100
"""Workloads that a page has a section of; the overview has all."""
MODEL, MOST_MODELS = "model", 10
"""The figure that takes the fit of a model, and the most workloads of a page that has it."""
EXAMPLES = 3  # failures of each kind whose text is shown
NO_TEXT = "(no text)"
MOST_TEXT = 4000  # characters of an error's text


@dataclass(frozen=True)
class Row:
    """One line of the overview: cells as text, each with the number that it is sorted by."""

    anchor: str
    name: str
    target: str
    cells: tuple[tuple[str, float | str], ...]


def check_library() -> None:
    """Raise :class:`InputError` where Jinja2 is missing."""
    extra("jinja2", "report", "a report")


@uncollected()
def report_page(
    materials: Sequence[Material],
    db: str,
    comparison: Comparison | None = None,
    other: str = "",
    live: Live | None = None,
) -> str:
    """Return the page of what the database called ``db`` knows, and how it compares with the
    database called ``other``, if that was read. A ``live`` page asks its server for news."""
    style, script = _style(), "".join((FOLDER / name).read_text() for name in SCRIPTS)
    if live is not None:
        script += (FOLDER / "live.js").read_text()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src {_digest(style)}; script-src {_digest(script)}"
        + ("" if live is None else "; connect-src 'self'")
    )
    fits = live is None and len(materials) <= MOST_MODELS
    sections = [
        _section(place, each, db, fits) for place, each in enumerate(materials[:MOST_SECTIONS])
    ]
    return template("report.html").render(
        policy=policy,
        style=trusted(style),
        script=trusted(script),
        db=plain(without_passwords(db)),
        other=plain(without_passwords(other)),
        version=VERSION,
        made=moment(time.time()),
        headings=HEADINGS,
        rows=[_row(place, each) for place, each in enumerate(materials)],
        targets=sorted({plain(each.target.summary) for each in materials}),
        trials=sum(len(each.searched) for each in materials),
        sections=sections,
        left_out=len(materials) - len(sections),
        comparison=comparison,
        ratios=list(_pictures("comparison", [ratios(comparison)] if comparison else [])),
        jobs=[_job(each) for each in jobs_of(materials)[:MOST_JOBS]],
        graphs=[_graph(each) for each in graphs_of(materials)[:MOST_GRAPHS]],
        job_headings=JOB_HEADINGS,
        graph_headings=GRAPH_HEADINGS,
        whole=list(_pictures("whole", [make(materials) for make in WHOLE.values()])),
        live=live and replace(live, part=trusted(live.part)),
        seconds=seconds,
        times=times,
        estimated=lambda value, write: estimated(value, write),
    )


HEADINGS = (
    "workload",
    "target",
    "best",
    "over the fastest rival",
    "of its roof",
    "trials",
    "failed",
    "seconds",
    "winner by",
)

JOB_HEADINGS = (
    *("layer", "weight", "first", "best", "gain", "of all that is saved", "spent"),
    *("computed by", "because"),
)
GRAPH_HEADINGS = (
    *("layer", "places", "kernel", "torch", "gain", "of torch's time that is saved"),
    *("computed by", "because"),
)


def _row(place: int, material: Material) -> Row:
    failed = sum(r.measurement.score is None for r in material.searched)
    winner = material.best[0].schedule if material.best else None
    origin = material.origins.get(winner, "-") if winner else "-"
    best, share = material.latency, material.of_roof
    rival, ratio = material.over_fastest or ("", None)
    return Row(
        f"w{place}" if place < MOST_SECTIONS else "",
        plain(material.name),
        plain(material.target.summary),
        (
            (_written(best, seconds), best.value if best else ""),
            (f"{_written(ratio, times)} {rival}".strip(), ratio.value if ratio else ""),
            (percent(share), share or ""),
            (str(len(material.searched)), len(material.searched)),
            (str(failed), failed),
            (f"{material.seconds:.0f}", material.seconds),
            (plain(origin), plain(origin)),
        ),
    )


def _written(value: Estimate | None, write: Any) -> str:
    if value is None:
        return "-"
    return estimated(value, write) if value.low < value.high else write(value.value)


def _section(place: int, material: Material, db: str, fits: bool) -> dict[str, Any]:
    """Describe the section of a workload; with what a model learns of it, if one ``fits``."""
    figures = [make(material) for name, make in FIGURES.items() if fits or name != MODEL]
    return {
        "anchor": f"w{place}",
        "name": plain(material.name),
        "target": plain(material.target.summary),
        "facts": [(name, plain(value)) for name, value in _facts(material)],
        "paste": [plain(line) for line in _paste(material, db)],
        "leaders": list(_leaders(material)),
        "figures": list(_pictures(f"w{place}", figures)),
        "decisions": [
            (
                plain(f"{each.decision}={each.value}"),
                percent(each.explained),
                percent(each.share_of_fastest),
                percent(each.share_of_all),
                times(each.slowdown),
            )
            for each in material.separations
            if each.explained > 0
        ][:20],
        "failures": list(_failures(material)),
        "runs": list(_runs(material)),
        **source_of(material),
    }


def _pictures(place: str, figures: Iterable[Picture]) -> Iterator[tuple[Picture, Any]]:
    """Yield each figure that shows something, with its picture."""
    for figure in figures:
        if not figure.is_empty:
            yield figure, trusted(drawn(figure, f"{place}-{figure.name}"))


def _job(job: Job) -> dict[str, Any]:
    """Return what a page tells of a job, and of each of its layers."""
    facts = [("gain of the whole", times(job.gain) if job.gain else "no kernel was right")]
    if job.measured is not None:
        gain, count = job.measured
        facts.append(("over torch", f"{times(gain)}, by {counted(count, 'layer')} timed in turns"))
    facts += [("began", moment(job.began)), ("lasted", clock(job.seconds))]
    return {
        "name": plain(job.name),
        "kind": "Suite" if job.is_suite else "Job",
        "target": plain(job.target),
        "facts": facts,
        "layers": [_layer(job, layer) for layer in job.layers[:MOST_LAYERS]],
        "left_out": max(0, len(job.layers) - MOST_LAYERS),
    }


def _layer(job: Job, layer: Layer) -> dict[str, Any]:
    who, why = layer.computed_by
    share = job.share(layer)
    cells = (
        f"{layer.weight:g}",
        seconds(layer.first) if layer.first else "-",
        seconds(layer.best) if layer.best else "-",
        times(layer.gain) if layer.gain else "-",
        percent(share) if share is not None else "-",
        f"{layer.seconds:.3g} s",
        who,
        why,
    )
    return _line(layer.name, layer.place, cells)


def _graph(graph: Graph) -> dict[str, Any]:
    """Return what a page tells of a graph of a compiled model, and of each of its regions."""
    measured = graph.measured
    by = "" if measured is None or measured >= 1 else ": torch computes all of it"
    return {
        "name": plain(f"{graph.model}, {graph.kind}"),
        "target": plain(graph.target),
        "facts": [
            ("measured, over torch alone", times(measured) + by),
            ("expected of its regions", times(graph.expected)),
            ("with kernels", seconds(graph.ours) if graph.ours else "-"),
            ("torch alone", seconds(graph.torch) if graph.torch else "-"),
            ("compiled", moment(graph.compiled_at)),
        ],
        "layers": [_region(graph, region) for region in graph.regions[:MOST_LAYERS]],
        "left_out": max(0, len(graph.regions) - MOST_LAYERS),
    }


def _region(graph: Graph, region: Region) -> dict[str, Any]:
    ours, theirs = region.ours, region.torch
    cells = (
        str(region.count),
        seconds(ours) if ours else "-",
        seconds(theirs) if theirs else "-",
        times(theirs / ours) if ours and theirs else "-",
        percent(region.saved / graph.torch) if graph.torch else "-",
        *region.computed_by,
    )
    return _line(region.material.name, region.place, cells)


def _line(name: str, place: int, cells: Iterable[str]) -> dict[str, Any]:
    """Return a line of a table about the workload at a ``place`` of the page."""
    return {
        "name": plain(name),
        "anchor": f"w{place}" if place < MOST_SECTIONS else "",
        "cells": tuple(map(plain, cells)),
    }


def _facts(material: Material) -> Iterator[tuple[str, str]]:
    best = material.winner
    if best is None or material.latency is None:
        yield "best", "no kernel was right"
        return
    value, unit = material.workload.rate(material.latency.value)
    yield "best", f"{_written(material.latency, seconds)}, {value:.1f} {unit}"
    if material.over_rival is not None:
        yield "over NumPy's BLAS", _written(material.over_rival, times)
    if material.over_torch is not None:
        yield "over torch", times(material.over_torch)
    if material.of_roof is not None:
        yield "of its roof", percent(material.of_roof)
    yield "schedule", str(best.schedule)
    yield "measured", f"{moment(best.started_at)} on {best.place.host or 'an unknown host'}"
    yield "the machine", why_busy(best) or "was quiet"


def _paste(material: Material, db: str) -> Iterator[str]:
    """Yield the call of the best in Python, and the command that repeats its run."""
    if not material.best:
        return
    best, space = material.best[0], material.space
    if space is not None and material.is_there(best):
        numerics = space.numerics_of(best.schedule)
        yield best_call(material.workload, material.target, db, numerics)
    run = material.runs.get(best.run)
    if run is not None and run.command:
        yield without_passwords(run.command)


def _leaders(material: Material) -> Iterator[tuple[str, ...]]:
    """Yield the latency of each of the best, its share of the best one's speed, who proposed it,
    and its decisions."""
    first = material.winner.score if material.winner else None
    for record in material.best:
        score = record.measurement.score
        if score is None or first is None:
            continue
        origin = material.origins.get(record.schedule, "-")
        cells = (seconds(score), percent(first / score), record.measurement.round, origin)
        yield (*map(plain, cells), plain(str(record.schedule)))


def _failures(material: Material) -> Iterator[tuple[str, int, list[tuple[str, str, str]]]]:
    """Yield each kind of failure, how often it occurred, and some schedules with their texts; the
    first of them with its source."""
    found: dict[str, list[Record]] = {}
    for record in material.records:
        if record.measurement.error_kind is not None:
            found.setdefault(str(record.measurement.error_kind), []).append(record)
    for kind, records in sorted(found.items(), key=lambda item: -len(item[1])):
        texts = [
            (
                plain(str(r.schedule)),
                plain_lines(r.measurement.error_text[:MOST_TEXT]) or NO_TEXT,
                _source(material, r) if place == 0 else "",
            )
            for place, r in enumerate(records[:EXAMPLES])
        ]
        yield kind, len(records), texts


def _source(material: Material, record: Record) -> str:
    """Return the source that today's templates make of a record's schedule, if they make one."""
    if material.space is None or not material.is_there(record):
        return ""
    try:
        return plain_lines(material.space.lower(record.schedule).source.body)
    except InputError:
        return ""


def _runs(material: Material) -> Iterator[tuple[str, ...]]:
    for run in material.runs.values():
        lasted = clock(max(0.0, run.heartbeat - run.started_at))
        search = str(run.configuration.get("search", "-"))
        cells = (run.session or run.key, moment(run.started_at), lasted, search, run.reason or "-")
        yield tuple(map(plain, cells))


def _style() -> str:
    colours = "".join(f".c{i}{{color:{c}}}" for i, c in enumerate(COLOURS))
    return (FOLDER / "report.css").read_text() + FIGURE_STYLE + colours


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
