"""Fill both databases with generated measurements, and time what jobs and readers ask of them.

    python -m experiments.database [--measurements 1000000] [--import 1000000]
        [--only sqlite|postgresql] [--folder FOLDER] [--prepare] [--out FILE]

Writes ``results.json``, or the file that is named; of a database that is left out it keeps what is
there. It needs PostgreSQL's own programs (``initdb``, ``postgres``), starts a server of its own
that listens on the loopback device alone, and takes about 2 KiB of disk a measurement in the folder
for temporary files, or in ``--folder``. There what was filled stays, and is used again;
``--prepare`` does that alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.database.figures import figures
from experiments.database.filling import prepared
from experiments.database.storage import postgres, sqlite
from tilewright.spaces.cpu.machine import cpu_model

HERE = Path(__file__).parent
KINDS = {"sqlite": sqlite, "postgresql": postgres}


def main() -> None:
    options = _options()
    results: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for kind, opened in KINDS.items():
        if options.only not in (None, kind):
            continue
        with _folder(options.folder) as folder, opened(folder) as place:
            made = prepared(place, options.measurements, options.lines)
            if options.prepare:
                continue
            results[kind] = {"machine": machine(), "command": command(options)}
            results[kind] |= figures(place, made)
            options.out.write_text(json.dumps(results, indent=1) + "\n")


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """Give the folder that was asked for, or a temporary one."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="tw-databases-") as made:
        os.chmod(made, 0o755)  # the server runs as another user
        yield Path(made)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.database")
    parser.add_argument("--measurements", type=int, default=1_000_000)
    parser.add_argument("--import", type=int, default=1_000_000, dest="lines")
    parser.add_argument("--only", choices=KINDS, help="leave the other database out")
    parser.add_argument("--folder", type=Path, help="where what is filled stays")
    parser.add_argument("--prepare", action="store_true", help="fill, and measure nothing")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    return parser.parse_args()


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


if __name__ == "__main__":
    main()
