"""Results of cases in a file of JSON: a run goes on where an earlier one ended."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from math import inf
from pathlib import Path
from typing import Any, Protocol, TypeVar


class Named(Protocol):
    """Anything with a name that has results of its own."""

    @property
    def name(self) -> str:
        """The name by which the results have it."""


C = TypeVar("C", bound=Named)


def resume(
    path: Path, module: str, facts: Mapping[str, Any], rows: str = "cases"
) -> dict[str, Any]:
    """Return the results in a file, none of its ``rows`` if it is not there yet, with the
    ``facts``, the date and the command of this run of a module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {rows: {}}
    command = shlex.join(["python", "-m", module, *sys.argv[1:]])
    return results | {**facts, "date": datetime.now(UTC).date().isoformat(), "command": command}


def remaining(
    cases: Iterable[C], results: Mapping[str, Any], only: re.Pattern[str], end: float = inf
) -> Iterator[C]:
    """Yield the cases whose names match ``only`` and that the results lack, until it is ``end`` by
    ``time.monotonic``."""
    for case in cases:
        if case.name in results["cases"] or not only.search(case.name):
            continue
        if time.monotonic() > end:
            return
        yield case


def write(
    path: Path,
    results: Mapping[str, Any],
    table: Callable[[Mapping[str, Any]], str] | None = None,
) -> None:
    """Keep the results, and their table of Markdown beside them."""
    path.write_text(json.dumps(results, indent=1) + "\n")
    if table is not None:
        path.with_suffix(".md").write_text(table(results))


def write_run(path: Path, machine: str, results: Mapping[str, Any]) -> None:
    """Write the results of a run that does not go on, with its date, the machine and its load."""
    about = {"date": date.today().isoformat(), "machine": machine, "load": os.getloadavg()[0]}
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, about | {**results})
