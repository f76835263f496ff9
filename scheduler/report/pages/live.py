"""The part of a dashboard that is renewed each second: the database's jobs, a cluster's drivers.

The rest of the page is made anew less often: it takes processor time from what is measured.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.measure.tables.progress import RunProgress
from tilewright.scheduler.cli.output import clock, moment, seconds
from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.report.pages.template import template
from tilewright.scheduler.tuning.runs.sessions import Session, SessionState, recent_sessions
from tilewright.spaces.workloads.spelling import short_text

if TYPE_CHECKING:
    from tilewright.measure.cluster.following import ClusterWatch
    from tilewright.measure.cluster.status import DriverStatus
    from tilewright.measure.database import Database

RECENT_RUNS = 200
"""Runs that are looked for jobs: so many of the latest, and all that may be alive."""
MOST_JOBS = 20  # jobs that are listed, the latest

JOB_HEADINGS = (
    *("job", "workload", "state", "began", "lasted", "attempts", "failures", "best"),
    "last result",
)
QUEUE_HEADINGS = ("driver", "job", "waiting", "building", "running", "done", "failures", "workload")
WORKER_HEADINGS = ("worker", "host", "device", "state", "job", "done", "why")

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Live:
    """A page that is renewed: its first part as HTML, and the ``state`` that the rest is of."""

    state: str
    part: str


class Jobs:
    """The recent jobs of a database. Of each run only what came since is read again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, RunProgress] = {}

    def rows(self) -> list[Cells]:
        """Return the cells of each job, the latest first."""
        found = recent_sessions(self._database, RECENT_RUNS)[::-1][:MOST_JOBS]
        keys = [run.key for job in found for run in job.runs]
        self._known = {key: self._renewed(key) for key in keys}
        return [self._cells(job) for job in found]

    def _renewed(self, key: str) -> RunProgress:
        known = self._known.get(key, RunProgress())
        return known + self._database.progress(key, known.last)

    def _cells(self, job: Session) -> Cells:
        state, names = job.state(time.time()), [short_text(run.workload) for run in job.runs]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        words = f"ended: {job.reasons}" if state is SessionState.ENDED else str(state)
        told = sum((self._known[run.key] for run in job.runs), RunProgress())
        best = seconds(told.best) if told.best and not more else "-"
        return _shown(
            job.name,
            names[0] + more,
            words,
            moment(job.started_at),
            clock(job.lasted),
            told.attempts,
            _kinds(told.failures),
            best,
            moment(told.at) if told.attempts else "-",
        )


def live_part(jobs: Sequence[Cells], cluster: ClusterWatch | None = None) -> str:
    """Return the HTML of the jobs, and of what the drivers of a cluster say of theirs."""
    drivers = () if cluster is None else cluster.drivers
    return template("live.html").render(
        job_headings=JOB_HEADINGS,
        jobs=jobs,
        cluster=None if cluster is None else plain(cluster.address),
        trouble="" if cluster is None else plain(cluster.trouble),
        drivers=[_driver(each) for each in drivers],
        queue_headings=QUEUE_HEADINGS,
        queue=[row for each in drivers for row in _queue(each)],
        worker_headings=WORKER_HEADINGS,
        workers=[row for each in drivers for row in _workers(each)],
    )


def _driver(driver: DriverStatus) -> str:
    state = "lost" if driver.is_lost(time.time()) else "running"
    return plain(f"{driver.driver}: {state}, {driver.rate:.1f} candidates a second")


def _queue(driver: DriverStatus) -> list[Cells]:
    return [
        _shown(
            driver.driver,
            job.id,
            *(job.waiting, job.building, job.running, job.done),
            _kinds(job.failures),
            f"{job.workload} on {job.target}",
        )
        for job in driver.jobs
    ]


def _workers(driver: DriverStatus) -> list[Cells]:
    return [
        _shown(w.role, w.host, w.device, w.state, w.job or "-", w.done, w.why or "-")
        for w in driver.workers
    ]


def _kinds(failures: Mapping[str, int]) -> str:
    ranked = Counter(failures).most_common()
    return ", ".join(f"{count} {kind}" for kind, count in ranked) or "none"


def _shown(*cells: Any) -> Cells:
    return tuple(plain(str(cell)) for cell in cells)
