"""Show the workers of a cluster and their tasks as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.scheduler.cli.output import table

if TYPE_CHECKING:
    from rich.table import Table

    from tilewright.measure.cluster.status import WorkerStatus

WORKER_COLUMNS = ("worker", "host", "device", "state", "job", "#done", "why")


def workers_table(workers: Sequence[WorkerStatus]) -> Table:
    """Return a row for each worker."""
    return table(WORKER_COLUMNS, map(_worker, workers))


def _worker(worker: WorkerStatus) -> Sequence[str]:
    return (
        *(worker.role, worker.host, worker.device, worker.state),
        *(worker.job, str(worker.done), worker.why),
    )
