"""``tilewright dashboard``."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from tilewright.scheduler.cli.options import DatabaseName, ReportedWorkloads


def dashboard_command(
    workloads: ReportedWorkloads = None,
    db: DatabaseName = "tuning.db",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port, or 0 for a free one.")
    ] = 0,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; others may read it then.")
    ] = "127.0.0.1",
) -> None:
    """Serve the report as a page that is renewed while results arrive, until Ctrl-C.

    Only this machine can open it, by the printed address with its token. It reads the database and
    nothing else. It needs pip install 'tilewright[dashboard]'.

    \b
    Example:
      tilewright dashboard --db tuning.db
    """
    from tilewright.measure.database import Database
    from tilewright.scheduler.cli.output import put
    from tilewright.scheduler.report.dashboard import (
        Pages,
        address_of,
        bound,
        check_libraries,
        serve,
    )
    from tilewright.scheduler.report.material import read_materials

    check_libraries()
    with Database(db, create=False) as database:
        read_materials(database, workloads or ())  # or else refused before a browser asks
        token = secrets.token_urlsafe(16)
        with bound(host, port) as listening:
            put(f"open {address_of(listening, host, token)} (Ctrl-C ends it)")
            serve(listening, host, Pages(database, db, workloads or ()), token)
