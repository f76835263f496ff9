"""``tilewright status``."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli.display.workers import workers_table
from tilewright.scheduler.cli.executors import Insecure
from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.output import clock, show, table

if TYPE_CHECKING:
    from rich.table import Table

    from tilewright.measure.cluster.status import DriverStatus, JobStatus

JOB_COLUMNS = (
    "driver",
    "job",
    "#waiting",
    "#building",
    "#running",
    "#done",
    "failures",
    "workload",
)


def status_command(
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="The Ray cluster: HOST:PORT, ray://HOST:PORT, or auto, the one that runs here.",
        ),
    ] = "auto",
    insecure_cluster: Insecure = False,
    format: Annotated[Format, typer.Option(help="table: for people; json: one object.")] = (
        Format.TABLE
    ),
) -> None:
    """Show what a Ray cluster tunes: jobs, workers, and candidates a second.

    \b
    Example:
      tilewright status --address 10.0.0.1:6379
    """
    from tilewright.measure.cluster.driver_status import drivers_at

    drivers = drivers_at(address, insecure_cluster)
    if format is Format.JSON:
        print(json.dumps([asdict(driver) for driver in drivers]))
        return
    if not drivers:
        print("nobody tunes on this cluster")
        return
    for driver in drivers:
        print(headline(driver, time.time()))
    show(jobs_table(drivers))
    show(workers_table([worker for driver in drivers for worker in driver.workers]))


def headline(driver: DriverStatus, now: float) -> str:
    """Return one line that describes a driver."""
    since = f"lost: silent for {clock(now - driver.at)}" if driver.is_lost(now) else "running"
    return f"{driver.driver}  {since}, {driver.rate:.1f} candidates/s"


def jobs_table(drivers: Sequence[DriverStatus]) -> Table:
    """Return a row for each job."""
    return table(JOB_COLUMNS, (_job(d, job) for d in drivers for job in d.jobs))


def _job(driver: DriverStatus, job: JobStatus) -> Sequence[str]:
    failures = ", ".join(f"{count} {kind}" for kind, count in job.failures.items()) or "none"
    counts = map(str, (job.waiting, job.building, job.running, job.done))
    return (driver.driver, job.id, *counts, failures, f"{job.workload} on {job.target}")
