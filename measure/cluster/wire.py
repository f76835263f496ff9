"""The messages between a driver and its workers: plain text, and binaries as bytes.

Workers trust their driver. A driver reads a worker's message as it reads an import: it checks each
field, and refuses a measurement that cannot be true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.measure.calls import call_from_json, call_to_json
from tilewright.measure.interfaces import Built
from tilewright.measure.records.fields import Fields
from tilewright.measure.records.jsonl import parse_json
from tilewright.measure.records.measurement import Candidate, Job, Measurement
from tilewright.measure.records.plausibility import why_implausible
from tilewright.measure.records.record import Record, measurement_from_json, measurement_to_json
from tilewright.measure.tables.described import described_target, described_workload
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel, Source
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.validation.canonical import canonical_json

NO_SOURCE = Source("", "", "")
"""The source of a kernel that arrives as a binary."""


@dataclass(frozen=True)
class Stored(Built):
    """A candidate whose binary lies in the cluster: number ``place`` of those that the task
    ``build`` made."""

    build: int = 0
    place: int = 0


# -- to build ----------------------------------------------------------------------------------


def build_request(job: Job, candidates: Sequence[Candidate]) -> str:
    """Write a request to build ``candidates``; each distinct prelude is sent once."""
    preludes = list(dict.fromkeys(c.kernel.source.prelude for c in candidates))
    kernels = [
        {
            **_schedule_and_call(c),
            "language": c.kernel.source.language,
            "prelude": preludes.index(c.kernel.source.prelude),
            "body": c.kernel.source.body,
        }
        for c in candidates
    ]
    return canonical_json({"job": _job(job), "preludes": preludes, "candidates": kernels})


def read_build_request(text: str) -> tuple[Job, list[Candidate]]:
    """Return the job and the candidates of a :func:`build_request`."""
    asked = json.loads(text)
    job, preludes = _job_of(asked["job"]), asked["preludes"]
    return job, [
        _candidate(job, data, Source(data["language"], preludes[data["prelude"]], data["body"]))
        for data in asked["candidates"]
    ]


def build_answer(built: Sequence[Built]) -> tuple[str, list[bytes]]:
    """Write the outcome of a build, and return its binaries, each once."""
    paths = list(dict.fromkeys(b.binary for b in built if b.binary is not None))
    answers: list[dict[str, Any]] = []
    for b in built:
        if b.binary is None:
            answers.append({"failure": measurement_to_json(b.failure())})
        else:
            answers.append({**_facts(b), "binary": paths.index(b.binary)})
    binaries = [path.read_bytes() if isinstance(path, Path) else path for path in paths]
    return canonical_json({"built": answers}), binaries


def read_build_answer(
    text: str, build: int, job: Job, candidates: Sequence[Candidate]
) -> list[Stored | Measurement]:
    """Read the outcome of each of ``candidates`` in the task ``build``: the place of its binary, or
    the failure.

    Raises :class:`InputError` where the worker's answer is malformed or cannot be true.
    """
    answers = _list(text, "built", len(candidates))
    return [_outcome(a, build, job, c) for a, c in zip(answers, candidates, strict=True)]


def _outcome(data: object, build: int, job: Job, candidate: Candidate) -> Stored | Measurement:
    if isinstance(data, Mapping) and "failure" in data:
        return _believed(data["failure"], job, candidate)
    fields = Fields(data)
    stored = Stored(
        candidate,
        seconds=fields.number("seconds", least=0.0),
        info=fields.mapping("info"),
        toolchain=fields.prose("toolchain"),
        build=build,
        place=fields.integer("binary"),
    )
    fields.finish()
    return stored


# -- to run ------------------------------------------------------------------------------------


def run_request(job: Job, built: Sequence[Stored]) -> str:
    """Write a request to measure ``built``. The binaries are sent beside it, grouped by
    :func:`builds_of`.
    """
    builds = builds_of(built)
    kernels = [
        {
            **_schedule_and_call(b.candidate),
            **_facts(b),
            "build": builds.index(b.build),
            "binary": b.place,
        }
        for b in built
    ]
    return canonical_json({"job": _job(job), "candidates": kernels})


def builds_of(built: Sequence[Stored]) -> list[int]:
    """Return the tasks that made the binaries of ``built``, each once."""
    return list(dict.fromkeys(b.build for b in built))


def read_run_request(text: str, binaries: Sequence[Sequence[bytes]]) -> tuple[Job, list[Built]]:
    """Return the job and what is to be measured of a :func:`run_request`."""
    asked = json.loads(text)
    job = _job_of(asked["job"])
    return job, [
        Built(
            _candidate(job, data),
            binaries[data["build"]][data["binary"]],
            data["seconds"],
            info=data["info"],
            toolchain=data["toolchain"],
        )
        for data in asked["candidates"]
    ]


def run_answer(measurements: Sequence[Measurement]) -> str:
    """Write the measurements of a run."""
    return canonical_json({"measured": [measurement_to_json(m) for m in measurements]})


def read_run_answer(text: str, job: Job, built: Sequence[Built]) -> list[Measurement]:
    """Return the measurements in the order of ``built``; :class:`InputError` where a worker's words
    are not to be believed."""
    answers = _list(text, "measured", len(built))
    return [_believed(a, job, b.candidate) for a, b in zip(answers, built, strict=True)]


# -- parts -------------------------------------------------------------------------------------


def _list(text: str, name: str, count: int) -> list[object]:
    fields = Fields(parse_json(text))
    answers = fields.take(name)
    fields.finish()
    if not isinstance(answers, list) or len(answers) != count:
        raise InputError(f"{name} is no list of {count} answers: {answers!r:.80}")
    return answers


def _believed(data: object, job: Job, candidate: Candidate) -> Measurement:
    """Return a worker's measurement of ``candidate``, if it can be one."""
    measurement = measurement_from_json(data)
    if measurement.schedule != candidate.schedule or measurement.round != job.round:
        raise InputError(f"a measurement of another candidate: {measurement.schedule}")
    wrong = why_implausible(Record(job.workload, job.target, "any", measurement))
    if wrong:
        raise InputError(f"{wrong}: {measurement.score}")
    return replace(measurement, schedule=candidate.schedule)


def _job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "workload": job.workload.to_json(),
        "target": job.target.to_json(),
        "best": job.best,
        "final": job.final,
        "thorough": job.thorough,
        "rivals": list(job.rivals),
    }


def _job_of(data: Mapping[str, Any]) -> Job:
    fields = Fields(data)
    workload, target = described_workload(fields), described_target(fields)
    how = (data["best"], data["final"], data["thorough"], tuple(data["rivals"]))
    return Job(data["id"], workload, target, *how)


def _facts(built: Built) -> dict[str, Any]:
    return {
        "seconds": built.seconds,
        "info": dict(built.info or {}),
        "toolchain": built.toolchain,
    }


def _schedule_and_call(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate without its kernel's source."""
    return {
        "schedule": candidate.schedule.to_json(),
        "call": call_to_json(candidate.kernel.call),
    }


def _candidate(job: Job, data: Mapping[str, Any], source: Source = NO_SOURCE) -> Candidate:
    kernel = Kernel(source, call_from_json(data["call"], job.workload))
    return Candidate(job, Schedule.from_json(data["schedule"]), kernel)
