"""Plugins of pytest: which tests run in which order, what happens, and what they execute."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Generator, Sequence
from importlib import import_module
from pathlib import Path

import pytest
from coverage import Coverage


class Order:
    """Runs ``chosen`` tests, in that order, and then all that are not among the ``known``."""

    def __init__(self, chosen: Sequence[str], known: Collection[str]) -> None:
        self._place = {name: place for place, name in enumerate(chosen)}
        self._known = known

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        due = [i for i in items if i.nodeid in self._place or i.nodeid not in self._known]
        items[:] = sorted(due, key=lambda i: self._place.get(i.nodeid, len(self._place)))


class ReportingPlugin:
    """Writes a line to a pipe for each test that begins (``+``) or fails (``-``), and the reasons
    to a file."""

    def __init__(self, pipe: int, reasons: Path) -> None:
        self._pipe, self._reasons = pipe, reasons

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell("+", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reasons.write_text(report.longreprtext)
            self._tell("-", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._reasons.write_text(report.longreprtext)
            self._tell("-", report.nodeid)

    def _tell(self, sign: str, name: str) -> None:
        os.write(self._pipe, f"{sign}{name}\n".encode())


class Survey:
    """Writes to the file ``out`` how many seconds each test takes, and which tests execute each
    line of ``files`` in ``tree``; the test ``""`` stands for the import of a file, which is done
    before the first test."""

    def __init__(self, tree: Path, files: Sequence[Path], out: Path) -> None:
        self._tree, self._files, self._out = tree, files, out
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_configure(self) -> None:
        measured = [str(self._tree / path) for path in self._files]
        self._coverage = Coverage(data_file=None, include=measured)
        self._coverage.start()

    def pytest_collection_finish(self) -> None:
        for path in self._files:
            import_module(".".join(path.with_suffix("").parts))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines = {str(path): data.contexts_by_lineno(str(self._tree / path)) for path in self._files}
        self._out.write_text(json.dumps({"seconds": self._seconds, "lines": lines}))
