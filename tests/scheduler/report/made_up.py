"""Databases that reports are made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests import databases
from tests.scheduler.made_up_machine import MadeUpMachine
from tests.scheduler.tuning.made_up_runs import tuner
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind, Measurement, Place, Status
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Proposal, Run
from tilewright.measure.testing.made_up import TARGET, VERSION, WORKLOAD
from tilewright.scheduler.testing.landscape import hills
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

HOSTILE = (
    "</script><script>document.title='x'</script><img src=x onerror=alert(1)>"
    "\"'&\x1b[31m\u202e{{7*7}}"
)

PRINTABLE = "".join(c for c in HOSTILE if c.isprintable())
"""What identifies something must be printable, or else it is refused."""


def tuned(folder: Path, trials: int = 48) -> Path:
    """A database of a run of the tuner on a made-up machine, failures and comparisons included."""
    path = databases.empty(folder)
    with Database(path) as database:
        tuner(hills(), database, MadeUpMachine()).run(trials=trials, seconds=600)
    return path


def of_records(folder: Path, records: list[Record], runs: list[Run] = []) -> Path:  # noqa: B006
    folder.mkdir(exist_ok=True)
    path = databases.empty(folder)
    with Database(path) as database:
        database.add([*runs, *records])
    return path


def record(number: int, score: float | None, work: Workload = WORKLOAD, **more) -> Record:
    """The attempt of one schedule of many."""
    schedule = Schedule("contraction", (("mc", number), ("packed", bool(number % 2))))
    kind = None if score is not None else more.pop("kind", ErrorKind.WRONG)
    status = Status.ERROR if score is None else Status.OK
    samples = () if score is None else (score, 1.02 * score, 1.01 * score)
    measurement = Measurement(
        schedule,
        status,
        score,
        samples,
        reference_samples=(1e-3,),
        clock="cpu",
        error_kind=kind,
        error_text=more.pop("text", ""),
        build_seconds=0.1,
        run_seconds=0.2,
        started_at=1.7e9 + number,
    )
    measurement = replace(measurement, **more.pop("measured", {}))
    made = Record(work, more.pop("target", TARGET), VERSION, measurement)
    return replace(made, recorded_at=1.7e9 + number, **more)


def hostile(folder: Path) -> Path:
    """A database of a stranger who put markup into every text that there is."""
    target: Target = replace(TARGET, model=PRINTABLE)
    run = Run(
        key=PRINTABLE,
        workload=WORKLOAD,
        target=target,
        session=HOSTILE,
        command=HOSTILE,
        configuration={"search": PRINTABLE},
        versions={"tilewright": PRINTABLE},
        started_at=1.7e9,
        heartbeat=1.7e9 + 60,
        reason=HOSTILE,
    )
    place = Place(HOSTILE, HOSTILE, HOSTILE)
    schedules = [Schedule(PRINTABLE, ((PRINTABLE, PRINTABLE), ("n", n))) for n in range(6)]
    proposal = Proposal(PRINTABLE, 0, 0.5, 0.1)
    records = [
        record(
            n,
            None if n % 3 == 2 else 1e-3 * (n + 1),
            target=target,
            run=PRINTABLE,
            proposal=replace(proposal, place=n),
            text=HOSTILE,
            measured={"schedule": schedule, "place": place, "info": {PRINTABLE: PRINTABLE}},
        )
        for n, schedule in enumerate(schedules)
    ]
    return of_records(folder, records, [run])


def many(folder: Path, workloads: int, each: int) -> Path:
    """A database of many workloads with some trials each."""
    works = [workload("softmax", r=8, c=32 + n) for n in range(workloads)]
    records = [
        record(n, None if n % 9 == 8 else 1e-5 * (1 + (n * 37 % 101) / 50), work)
        for work in works
        for n in range(each)
    ]
    return of_records(folder, records)


def sampled(folder: Path, work: Workload, target: Target, count: int = 6, bad: int = 0) -> Path:
    """A database of schedules that templates have, the first the fastest, and latencies made up;
    the last of them, the ``bad`` ones, failed."""
    space = space_for(work, target)
    population = space.sample(np.random.default_rng(1), count)
    records = [
        record(
            n,
            None if n >= count - bad else 1e-3 * (n + 1),
            work,
            target=target,
            measured={"schedule": space.schedule(row)},
        )
        for n, row in enumerate(population)
    ]
    records = [replace(each, template_version=space.version_of(each.schedule)) for each in records]
    return of_records(folder, records)


def suite(folder: Path, title: str = "two layers") -> Path:
    """A database of a suite: softmax, of weight 4, became 3 times as fast, and twice as fast as
    torch; layernorm as fast as 1.25 of before, and slower than torch; logsumexp never was right."""
    works = [workload(name, r=8, c=64) for name in ("softmax", "layernorm", "logsumexp")]
    weights, scores = (4.0, 1.0, 2.0), ((6e-3, 3e-3, 2e-3), (5e-3, None, 4e-3), (None, None, None))
    records, runs = [], []
    for place, (work, weight, own) in enumerate(zip(works, weights, scores, strict=True)):
        told = {"suite": title, "name": f"{title} {place}", "weight": weight}
        run = Run(
            f"run{place}", work, TARGET, session="s", configuration=told, started_at=1.7e9,
            heartbeat=1.7e9 + 40,
        )  # fmt: skip
        runs.append(run)
        for turn, score in enumerate(own):
            records.append(record(10 * turn + place, score, work, run=run.key))
    for run, ours, theirs in zip(runs[:2], (2e-3, 4e-3), (4e-3, 3e-3), strict=True):
        told = {"rival": "torch", "ours_seconds": ours}
        again = replace(run, key=f"torch {run.key}", session="torch", configuration=told)
        runs.append(replace(again, ended_at=run.started_at, library_seconds=theirs))
    return of_records(folder, records, runs)
