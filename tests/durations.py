"""Reports where a run of the tests spends its time: by process, by folder, and by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

FILES = 20
"""Files that are listed, the slowest first."""
LEAST = 300.0
"""Seconds of tests from which on a run says where they went: those of the whole suite."""
DEPTH = 3
"""Parts of a folder's path, such as ``tests/measure/cuda``."""


def summary(reports: Iterable[Any]) -> Iterator[str]:
    """Yield the lines for the reports of a run's setups, calls and teardowns; none for a short
    run."""
    processes, folders, files = Counter[str](), Counter[str](), Counter[str]()
    for report in reports:
        path = PurePath(report.nodeid.partition("::")[0])
        processes[_process(report)] += report.duration
        folders["/".join(path.parts[: min(DEPTH, len(path.parts) - 1)])] += report.duration
        files[str(path)] += report.duration
    if processes.total() < LEAST:
        return
    for name, counted, most in (
        ("process", processes, None),
        ("folder", folders, None),
        ("file", files, FILES),
    ):
        yield f"seconds by {name}"
        yield from (f"{seconds:8.1f}  {place}" for place, seconds in counted.most_common(most))


def _process(report: Any) -> str:
    """Name the process that a test ran in."""
    node = getattr(report, "node", None)
    return "this" if node is None else str(node.gateway.id)
