"""Time how long programs take to be read, derived and given a space, and packages to be imported.

    python -m experiments.overheads.language [--repeats 9] [--out FILE]

Takes the example of each named operator: reading its text into a workload (5 ms wanted with what
is derived), all that is derived of its program as ``tilewright show`` tells it, and its space on an
H100 (20 ms wanted). Packages are imported in processes of their own (300 ms wanted), compiled to
bytecode before as those of users are. Times are of the processor, the least of the repeats. Writes
``language.json``.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from experiments.overheads.results import write
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.derivation.facts import describe
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.named import named, names, operator
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

HERE = Path(__file__).parent
PACKAGES = (
    "tilewright",
    "tilewright.spaces.operators",
    "tilewright.measure.database",
    "tilewright.costmodel.model",
)
TIMED = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Return the least of some calls, after one that does not count."""
    call()
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return round(1e3 * min(taken), 2)


def operators(repeats: int) -> list[dict[str, Any]]:
    """Return each of the named ones."""
    return [_operator(name, repeats) for name in names()]


def _operator(name: str, repeats: int) -> dict[str, Any]:
    example = named(name).example
    made = workload(f"{name} {example}")
    text = operator(name, **dict(word.split("=", 1) for word in shlex.split(example))).text
    target = cuda_target("sm_90a")
    found = {
        "operator": name,
        "reading": milliseconds(lambda: workload(f"{name} {example}"), repeats),
        "deriving": milliseconds(lambda: describe(program(text)), repeats),
    }
    try:
        return {**found, "space": milliseconds(lambda: space_for(made, target), repeats)}
    except InputError as refusal:
        return {**found, "refusal": str(refusal)}


def imports(repeats: int) -> dict[str, float]:
    """Return the milliseconds of each package's import."""
    with tempfile.TemporaryDirectory() as compiled:
        return {package: _import(package, repeats, compiled) for package in PACKAGES}


def _import(package: str, repeats: int, compiled: str) -> float:
    command = [sys.executable, "-c", TIMED.format(package)]
    keeping = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
    outputs = [  # the first compiles
        subprocess.check_output(command, text=True, env=keeping) for _ in range(1 + repeats)
    ]
    return round(1e3 * min(map(float, outputs)), 1)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.overheads.language")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=HERE / "language.json")
    options = parser.parse_args()
    result = {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "machine": platform.processor() or platform.machine(),
        "milliseconds_of_imports": imports(options.repeats),
        "milliseconds_of_operators": operators(options.repeats),
    }
    write(options.out, result)


if __name__ == "__main__":
    main()
