"""Workers, jobs and outcomes of a made-up cluster."""

from __future__ import annotations

from dataclasses import replace

from tests.measure.cluster.simulated import TARGET, WORK, candidate, latency
from tilewright.measure.cluster.driver.backlog import Backlog
from tilewright.measure.cluster.driver.ready_workers import Worker
from tilewright.measure.cluster.wire import Stored
from tilewright.measure.records.measurement import Job, Measurement, Result, Status

OTHER = replace(TARGET, model="another")
TARGETS = {"here": TARGET, "there": OTHER}


def worker(id, role="run", target=TARGET):
    serves = {target.fingerprint}.__contains__
    return Worker(id, role, lambda asked: serves(asked.fingerprint))


def backlog(*workers):
    made = Backlog()
    for w in workers or (worker("run"), worker("build", "build")):
        made.join(w)
    return made


def job(id="one", target=TARGET, **options):
    return Job(id, WORK, target, **options)


def candidates(of, count, prefix=""):
    return [candidate(f"{of.id}{prefix}{i}", of) for i in range(count)]


def outcomes(task):
    return [Stored(b.candidate, build=task.number) for b in task.attempt.built]


def verdicts(task, status=Status.OK, kind=None):
    return [
        Measurement(
            b.candidate.schedule,
            status,
            latency(b.candidate.schedule) if kind is None else None,
            error_kind=kind,
            round=task.job.round,
        )
        for b in task.attempt.built
    ]


def finish(made: Backlog, task, known: list[Result]) -> None:
    if task.builds:
        known += made.built(task.number, outcomes(task))
    else:
        known += made.ran(task.number, verdicts(task))


def drain(made: Backlog, known: list[Result], rounds: int = 2000) -> None:
    for _ in range(rounds):
        tasks = made.tasks() + made.assign(0.0)
        if not tasks:
            return
        for task in tasks:
            finish(made, task, known)
    raise AssertionError("it never ends")
