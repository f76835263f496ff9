"""Measure what the command line takes to start, and what `query` takes in a process that runs on.

    python -m experiments.overheads.start [--processes 10] [--repeats 100] [--out FILE]

Tunes a product for a few trials first. Then it runs each command in fresh processes, compiled to
bytecode before, and gives the median of their CPU time, user and system. A warm `query` is the
median CPU time of calls in this process, after one that does not count. Writes ``start.json`` (half
a minute).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from experiments.overheads.results import with_facts, write
from tilewright import query, tune

HERE = Path(__file__).parent
PRODUCT = ("matmul", "m=512", "n=512", "k=512")
UNKNOWN = ("matmul", "m=512", "n=512", "k=768")
COMMANDS = {
    "import tilewright": ("-c", "import tilewright"),
    "--version": ("-m", "tilewright", "--version"),
    "query, measured": ("-m", "tilewright", "query", *PRODUCT),
    "query, transferred": ("-m", "tilewright", "query", *UNKNOWN),
    "query, no database": ("-m", "tilewright", "query", *PRODUCT, "--db", "no.db"),
}


def cpu_seconds(arguments: Sequence[str], folder: str, environment: dict[str, str]) -> float:
    """Return the CPU time of a fresh Python process with these arguments and its children."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment, stdout=quiet, stderr=quiet
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def of_commands(folder: str, processes: int) -> dict[str, float]:
    """Return the median CPU seconds of each command."""
    root = str(HERE.parents[1])
    paths = (root, f"{root}/scheduler/face", os.environ.get("PYTHONPATH", ""))
    keeping = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": f"{folder}/compiled",
    }
    found = {}
    for name, arguments in COMMANDS.items():
        taken = [cpu_seconds(arguments, folder, keeping) for _ in range(1 + processes)]
        found[name] = round(median(taken[1:]), 3)  # the first compiles
    return found


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median of some calls, after one that does not count."""
    call()
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return round(1e3 * median(taken), 2)


def of_warm_queries(database: str, repeats: int) -> dict[str, float]:
    """Return the milliseconds of a `query` in this process, measured and transferred."""
    asked = {"measured": " ".join(PRODUCT), "transferred": " ".join(UNKNOWN)}
    return {
        name: milliseconds(lambda text=text: query(text, "cpu", database), repeats)
        for name, text in asked.items()
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.overheads.start")
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--out", type=Path, default=HERE / "start.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/tuning.db"
        tune(" ".join(PRODUCT), "cpu", database, trials=8, seconds=10)
        found = {
            "cpu_seconds_of_commands": of_commands(folder, options.processes),
            "milliseconds_of_warm_queries": of_warm_queries(database, options.repeats),
        }
    write(options.out, with_facts(found, processes=options.processes, repeats=options.repeats))


if __name__ == "__main__":
    main()
