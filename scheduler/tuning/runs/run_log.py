"""Keeps the record of a tuning run in the database, beside its measurements."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.measure.records.measurement import Measurement, new_job_id
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Proposal, Run
from tilewright.measure.tables.retries import UnavailableError
from tilewright.scheduler.strategies.search import Proposed
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.runs.process import this_process
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.version import VERSION

if TYPE_CHECKING:
    from tilewright.measure.database import Database

HEARTBEAT = 10.0  # seconds without a result after which a run says that it is alive
STEP = 1.0  # seconds by which a clock that was set differs


class RunLog:
    """Keeps one run: that it began, lives and ended, and its measurements, each with who proposed
    the schedule and what that one expected."""

    def __init__(self, database: Database, space: Space, run: Run) -> None:
        self._database, self._space, self._run = database, space, run
        self._proposals: dict[Schedule, Proposal] = {}
        self._places = 0
        self._alive = self._began = time.monotonic()
        self._started_at = run.started_at

    def begin(self) -> None:
        """Keep the run, before anything is measured."""
        self._database.begin_run(self._run)

    def propose(self, proposed: Sequence[Proposed]) -> None:
        """Note the candidates of a batch, which get the next places in the run."""
        for p in proposed:
            self._proposals[p.schedule] = Proposal(p.origin, self._places, p.mean, p.spread)
            self._places += 1

    def record(self, measurements: Sequence[Measurement]) -> None:
        """Keep results; on disk on return."""
        self._database.record_all([self._record(measurement) for measurement in measurements])
        self._alive = time.monotonic()
        self._follow_clock()

    def beat(self) -> None:
        """Say that the run is alive, if there was nothing to record for a while."""
        if time.monotonic() - self._alive >= HEARTBEAT:
            with suppress(
                UnavailableError
            ):  # the next result waits for the database, this does not
                self._database.beat(self._run.key)
                self._follow_clock()
            self._alive = time.monotonic()

    def end(self, reason: str) -> None:
        """Note that the run has ended, and why."""
        self._follow_clock()
        self._database.end_run(self._run.key, reason)

    def _follow_clock(self) -> None:
        """Follow the clock if somebody set it: note when the run began by the clock as it is now:
        how long it lasted is told from that."""
        started_at = time.time() - (time.monotonic() - self._began)
        if abs(started_at - self._started_at) >= STEP:
            with suppress(InputError):  # a role may append without the right to change this
                self._database.set_start(self._run.key, started_at)
            self._started_at = started_at

    def _record(self, measurement: Measurement) -> Record:
        schedule = measurement.schedule
        return Record(
            workload=self._space.workload,
            target=self._space.target,
            template_version=self._space.version_of(schedule),
            measurement=measurement,
            run=self._run.key,
            proposal=self._proposals.pop(schedule, None),
        )


def new_run(
    space: Space,
    baseline: Baseline,
    session: str,
    command: str,
    seed: int,
    configuration: Mapping[str, Any],
) -> Run:
    """Return a run that begins now in ``space``; see :class:`measure.records.run.Run`."""
    now = time.time()
    return Run(
        key=new_job_id(),
        workload=space.workload,
        target=space.target,
        session=session,
        command=command,
        seed=seed,
        configuration=configuration,
        versions=versions(space) | {"process": this_process()},
        started_at=now,
        heartbeat=now,
        peak_gflops=baseline.peak_gflops,
        library_seconds=baseline.numpy_seconds,
    )


def versions(space: Space) -> dict[str, str]:
    """Return the versions of the software and templates that a run uses."""
    return {
        "tilewright": VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "templates": ",".join(sorted(space.versions)),
    }
