"""What tables on a terminal show of a run and its cluster, on a made-up machine that is quick."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from tests.scheduler.made_up_machine import MadeUpMachine
from tilewright.measure.cluster.status import DriverStatus, WorkerStatus
from tilewright.measure.database import Database
from tilewright.scheduler.cli.display.choice import course_of
from tilewright.scheduler.cli.display.live_table import LiveTable
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.testing.landscape import MACHINE, hills
from tilewright.scheduler.tuning.events import Started
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

WORKER = WorkerStatus("run", "node7", "device 3", "resting", "", 5, "slower than its peers")
DRIVER = DriverStatus("laptop:12", 0.0, 1.5, (), (WORKER,))


class Terminal(io.StringIO):
    """Keeps what is drawn."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are drawn when they are told to, and never by their own clock."""
    monkeypatch.setattr("tilewright.scheduler.cli.display.live_table.PER_SECOND", 1e-6)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")


def blind(space: Space) -> RandomSearch:
    return RandomSearch(space, 0)


def check(what: Workload | Suite, tuner: Tuner) -> None:
    terminal = Terminal()
    with redirect_stdout(terminal), LiveTable(course_of, lambda: DRIVER) as table:
        table.tell(Started.of(what, MACHINE, "session"))
        table.tell(tuner.run(8, 60, on_progress=table.tell))
    begin, _, end = terminal.getvalue().partition("8 of 8")
    assert "measuring the peak" in begin
    assert "stopped by" not in begin
    assert "stopped by" in end
    for words in ("node7", "device 3", "resting", "slower than its peers"):
        assert words in begin


def test_the_last_state_of_a_run_is_drawn_before_its_result(database: Database) -> None:
    space = hills()
    work, options = space.workload, {"make_search": blind, "spaces": [space]}
    tuner = Tuner(work, MACHINE, database, MadeUpMachine(), **options)
    check(work, tuner)


def test_the_last_state_of_a_suite_is_drawn_before_its_result(database: Database) -> None:
    space = hills()
    suite, options = Suite("one", (Member(space.workload),)), {"spaces": [space]}
    tuner = Tuner(suite, MACHINE, database, MadeUpMachine(), make_search=blind, **options)
    check(suite, tuner)
