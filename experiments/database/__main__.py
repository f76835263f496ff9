"""Fill both databases with generated measurements, and time what jobs and readers ask of them.

    python -m experiments.database [--measurements 1000000] [--import 1000000]
        [--only sqlite|postgresql] [--out FILE]

Writes ``results.json``, or the file that is named; of a database that is left out it keeps what is
there. It needs PostgreSQL's own programs (``initdb``,
``postgres``), starts a server of its own that listens on the loopback device alone, and takes about
2 KiB of disk a measurement in the folder for temporary files.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import socket
import tempfile
from pathlib import Path
from typing import Any

from experiments.database.figures import figures
from spaces.cpu.machine import cpu_model
from tests.measure import postgresql

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.database")
    parser.add_argument("--measurements", type=int, default=1_000_000)
    parser.add_argument("--import", type=int, default=1_000_000, dest="lines")
    parser.add_argument("--only", choices=KINDS, help="leave the other database out")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    results: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for kind, measure in KINDS.items():
        if options.only in (None, kind):
            made = {"machine": machine(), "command": command(options)}
            results[kind] = made | measure(options.measurements, options.lines)
            options.out.write_text(json.dumps(results, indent=1) + "\n")


def sqlite(count: int, lines: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return figures(lambda name: str(place / f"{name}.db"), count, lines, place)


def postgres(count: int, lines: int) -> dict[str, Any]:
    programs = postgresql.binaries()
    if programs is None:
        raise SystemExit("no PostgreSQL server here: SQLite's figures alone were written")
    port = free_port()
    settings = ("listen_addresses=127.0.0.1", "max_wal_size=4GB")
    with (
        postgresql.server(programs, settings, port) as server,
        tempfile.TemporaryDirectory() as folder,
    ):

        def made(name: str) -> str:
            server.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
            return f"postgresql+psycopg://{postgresql.USER}@127.0.0.1:{port}/{name}"

        return figures(made, count, lines, Path(folder))


KINDS = {"sqlite": sqlite, "postgresql": postgres}


def command(options: argparse.Namespace) -> str:
    sizes = f"--measurements {options.measurements} --import {options.lines}"
    return f"python -m experiments.database {sizes}"


def machine() -> dict[str, Any]:
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
