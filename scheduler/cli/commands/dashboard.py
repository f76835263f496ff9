"""``tilewright dashboard``."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack, closing
from typing import Annotated

import typer

from tilewright.scheduler.cli.executors import Insecure
from tilewright.scheduler.cli.options import DatabaseName, ReportedWorkloads

NICE = 10
"""Says how far this process stands back where kernels are measured beside it."""


ClusterAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Show the queue and workers of this Ray cluster, too: HOST:PORT, ray://HOST:PORT, "
        "or auto, the one that runs here.",
    ),
]


def dashboard_command(
    workloads: ReportedWorkloads = None,
    db: DatabaseName = "tuning.db",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port, or 0 for a free one.")
    ] = 0,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; others may read it then.")
    ] = "127.0.0.1",
    address: ClusterAddress = None,
    insecure_cluster: Insecure = False,
) -> None:
    """Serve the report as a page that is renewed while results arrive, until Ctrl-C.

    Only this machine can open it, by the printed address with its token. It reads the database and
    nothing else. It needs pip install 'tilewright[dashboard]'.

    \b
    Examples:
      tilewright dashboard --db tuning.db
      tilewright dashboard --db postgresql://team@10.0.0.1/tuning --address 10.0.0.1:6379
    """
    from tilewright.measure.database import Database
    from tilewright.scheduler.cli.output import put
    from tilewright.scheduler.report.material import nothing_to_report
    from tilewright.scheduler.report.pages.dashboard import (
        Pages,
        address_of,
        bound,
        check_libraries,
        serve,
    )

    check_libraries()
    with ExitStack() as stack:
        database = stack.enter_context(Database(db, create=False))
        if not database.pairs() and not database.recent_runs(1, 0.0):
            raise nothing_to_report(database)
        cluster = None
        if address is not None:
            from tilewright.measure.cluster.following import ClusterWatch

            cluster = stack.enter_context(closing(ClusterWatch(address, insecure_cluster)))
            cluster.check()
        pages, token = Pages(database, db, workloads or (), cluster), secrets.token_urlsafe(16)
        pages.page()  # or else refused before a browser asks
        os.nice(NICE)
        listening = stack.enter_context(bound(host, port))
        put(f"open {address_of(listening, host, token)} (Ctrl-C ends it)")
        serve(listening, host, pages, token)
