"""Exports of our own database: each workload on each target is a recorded space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from pathlib import Path

from tilewright.measure.records.jsonl import read_lines
from tilewright.measure.records.record import Record
from tilewright.scheduler.replay.recording import Outcome, Recording, merged, recording
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.template import Template


def export_recordings(path: Path, report: Callable[[str], None]) -> list[Recording]:
    """Return the recordings in an export, in the order of their first records.

    The machine's own failures, doubted records and schedules that today's templates cannot make are
    left out; a number between those that a decision has today is welcome. Those of one version of
    each template count, for they were measured alike: today's, or else the one with the most
    records, which is as good a landscape. ``report`` is told of workloads of which nothing is left.
    Raises :class:`InputError` if that is all of them, or the file is malformed.
    """
    found: dict[tuple[str, str], list[Record]] = {}
    for _, line in read_lines(path, report):
        if isinstance(line, Record) and not (line.measurement.lost or line.doubted):
            found.setdefault((line.workload.key, line.target.fingerprint), []).append(line)
    recordings = []
    for records in found.values():
        try:
            recordings.append(_recording(records))
        except InputError as error:
            report(str(error))
    if not recordings:
        raise InputError(f"{path} cannot be replayed: no schedule in it ran that can be made today")
    return recordings


def _recording(records: Sequence[Record]) -> Recording:
    """Make a recording from the records of one workload on one target.

    Its quantities are those that the templates themselves report.
    """
    workload, target = records[0].workload, records[0].target
    today = space_for(workload, target)
    schedules = [record.schedule for record in records]
    templates = [refined(template, schedules) for template in today.templates.values()]
    space = Space(workload, target, templates)
    versions = _versions(records, space.versions)
    outcomes = merged(
        (record.schedule, _outcome(record))
        for record in records
        if record.template_version == versions[record.schedule.template]
        and record.schedule in space
    )
    return recording(f"{workload} on {target.summary}", space.templates.values(), outcomes)


def refined(template: Template, schedules: Sequence[Schedule]) -> Template:
    """Return ``template`` whose decisions may also be the whole numbers that ``schedules`` have
    between its own: a finer grid, of which its rules judge as they do of its own."""
    own = [schedule.values for schedule in schedules if schedule.template == template.name]
    return template.with_values(
        {
            decision.name: _with_between(
                decision.values, [values.get(decision.name) for values in own]
            )
            for decision in template.decisions
        }
    )


def _with_between(values: tuple[Value, ...], others: Sequence[Value | None]) -> tuple[Value, ...]:
    """Return ``values`` and those of the ``others`` that lie between them, where all are whole
    numbers in rising order."""
    own = [value for value in values if type(value) is int]
    if len(own) < len(values) or own != sorted(own):
        return values
    between = {v for v in others if type(v) is int and own[0] < v < own[-1]}
    return tuple(sorted({*own, *between}))


def _versions(records: Sequence[Record], today: Set[str]) -> dict[str, str]:
    """Return the version whose records count, of each template."""
    counts = Counter((record.schedule.template, record.template_version) for record in records)
    rising = sorted(counts, key=lambda pair: (pair[1] in today, counts[pair], pair))
    return dict(rising)


def _outcome(record: Record) -> Outcome:
    m = record.measurement
    return Outcome(m.score, m.build_seconds + m.run_seconds)
