"""Parallel coordinates as data: each trial is a line through its latency and its decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log10
from typing import TYPE_CHECKING

import numpy as np

from tilewright.scheduler.report.drawing.elements import axis_ends, number_text, round_numbers
from tilewright.scheduler.report.figure import Axis, Picture
from tilewright.scheduler.report.material import Material, origin_of

if TYPE_CHECKING:
    from tilewright.measure.records.record import Record
    from tilewright.spaces.schedule import Value

MOST_AXES = 8  # decisions, the template among them
GROUPS = ("fastest tenth", "faster half", "slower half", "failed")
FAILED = 1.0  # place of trials without a latency
SLOWEST = 0.9  # place of the slowest trial
NONE = "-"  # stands for a decision that a trial's template does not have


@dataclass(frozen=True)
class Dimension:
    """An axis. Each trial has a place on it, from 0 to 1; ``ticks`` are places with names."""

    name: str
    ticks: tuple[tuple[float, str], ...]
    places: tuple[float, ...]


@dataclass(frozen=True)
class Parallel(Picture):
    """Parallel coordinates of trials. ``groups`` are indices of :data:`GROUPS`, ``numbers`` count
    attempts from 1, ``latencies`` are seconds (None of a trial that failed), and ``origins`` say
    who proposed each."""

    dimensions: tuple[Dimension, ...]
    groups: tuple[int, ...]
    numbers: tuple[int, ...]
    latencies: tuple[float | None, ...]
    origins: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of trials."""
        return len(self.numbers)


def parallel_of(material: Material, explained: Mapping[str, float]) -> Parallel:
    """Return the trials of a search as lines; the decisions that explain most come first."""
    records = material.searched
    latencies = [record.measurement.score for record in records]
    decisions = list(_decisions(records, explained))
    dimensions = (_latency(latencies), *decisions) if records else ()
    caption = (
        f"{len(records)} trials, each a line through its latency and {len(decisions)} decisions"
    )
    return Parallel(
        "parallel",
        "Trials by decision",
        caption,
        dimensions,
        tuple(_groups(latencies)),
        tuple(number for number, _ in material.numbered),
        tuple(latencies),
        tuple(map(origin_of, records)),
    )


def _latency(latencies: Sequence[float | None]) -> Dimension:
    known = [each for each in latencies if each is not None and each > 0]
    low, high = ends = axis_ends(known, log=True)

    def place(value: float) -> float:
        return SLOWEST * (log10(value) - log10(low)) / (log10(high) - log10(low))

    axis = Axis("latency", "s", log=True)
    ticks = [(place(value), number_text(value, axis)) for value in round_numbers(ends, log=True)]
    places = tuple(place(each) if each else FAILED for each in latencies)
    return Dimension("latency", (*ticks, (FAILED, "failed")), places)


def _groups(latencies: Sequence[float | None]) -> Iterable[int]:
    known = np.array([each for each in latencies if each is not None])
    tenth, half = np.quantile(known, (0.1, 0.5)) if len(known) else (0.0, 0.0)
    for each in latencies:
        yield 3 if each is None else 0 if each <= tenth else 1 if each <= half else 2


def _decisions(records: Sequence[Record], explained: Mapping[str, float]) -> Iterable[Dimension]:
    """Yield the decisions that were made in more than one way, the most telling first."""
    schedules = {r.schedule.template: r.schedule for r in records}.values()  # names are alike
    names = dict.fromkeys(name for each in schedules for name, _ in each.decisions)
    ranked = sorted(["template", *names], key=lambda name: -explained.get(name, 0.0))
    yield from islice(filter(None, (_decision(records, name) for name in ranked)), MOST_AXES)


def _decision(records: Sequence[Record], name: str) -> Dimension | None:
    """Return the axis of a decision, None if it was made in one way alone."""
    column: list[Value | None] = (
        [r.schedule.template for r in records]
        if name == "template"
        else [r.schedule.values.get(name) for r in records]
    )
    values = sorted(set(column), key=_order)
    if len(values) < 2:
        return None
    places = {value: (n + 0.5) / len(values) for n, value in enumerate(values)}
    ticks = tuple((place, _text(value)) for value, place in places.items())
    return Dimension(name, ticks, tuple(places[value] for value in column))


def _order(value: Value | None) -> tuple[int, float, str]:
    """Sort what is missing first, then numbers, then names."""
    if value is None:
        return 0, 0.0, ""
    return (2, 0.0, value) if isinstance(value, str) else (1, float(value), "")


def _text(value: Value | None) -> str:
    return NONE if value is None else str(value)
