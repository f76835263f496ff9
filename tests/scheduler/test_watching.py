"""What ``progress=True`` shows of a run in Python: lines, a table, or an output of a notebook."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from types import ModuleType
from typing import Any

import pytest

from tests.scheduler.screen import left_on_screen
from tilewright import InputError, tune, tune_suite
from tilewright.scheduler.cli.display import notebook

SMALL = "softmax r=8 c=32"
SUITE = '[[workloads]]\noperator = "softmax"\nparameters = { r = 8, c = 32 }\n'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Output:
    """One output of a cell, with all that it has shown."""

    def __init__(self, first: Any) -> None:
        self.shown = [first]

    def update(self, made: Any) -> None:
        self.shown.append(made)


@pytest.fixture
def outputs(monkeypatch):
    """The outputs of a cell; IPython, with a shell that has a kernel, stands in ``sys.modules``."""
    made: list[Output] = []

    def display(first: Any, display_id: bool) -> Output:
        assert display_id
        made.append(Output(first))
        return made[-1]

    class Shell:
        kernel = object()

    ipython = ModuleType("IPython")
    ipython.get_ipython = Shell  # type: ignore[attr-defined]
    ipython.display = ModuleType("IPython.display")  # type: ignore[attr-defined]
    ipython.display.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(notebook, "SECONDS", 0.0)
    return made


def test_without_progress_nothing_is_printed(tmp_path, capsys):
    tune(SMALL, "cpu", tmp_path / "tuning.db", trials=4)
    assert capsys.readouterr() == ("", "")


def test_lines_tell_the_course_where_there_is_no_terminal(tmp_path, capsys):
    seen = []
    result = tune(
        SMALL, "cpu", tmp_path / "tuning.db", trials=4, on_progress=seen.append, progress=True
    )
    out, err = capsys.readouterr()
    first, *_ = out.splitlines()
    assert re.fullmatch(r"0:00  tuning softmax r=8 c=32 on cpu .*", first)
    assert "session" not in out, "there is none that tilewright resume could go on with"
    assert re.search(r"^\d+:\d\d  trial 1: [\d.]+ .?s, ", out, re.MULTILINE)
    assert re.search(r"^stopped by +trials after ", out, re.MULTILINE)
    assert (err, seen[-1].trials) == ("", result.trials)


def test_a_terminal_keeps_the_lines_and_the_outcome(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    with redirect_stdout(terminal):
        tune(SMALL, "cpu", tmp_path / "tuning.db", trials=4, progress=True)
    kept = "\n".join(left_on_screen(terminal.getvalue()))
    assert re.search(r"^\d+:\d\d  trial 1: ", kept, re.MULTILINE)
    assert "opening the database" in terminal.getvalue()
    assert "phase" not in kept
    assert re.search(r"^stopped by", kept, re.MULTILINE)


def test_a_notebook_gets_one_output_that_is_updated(tmp_path, capsys, outputs):
    tune(SMALL, "cpu", tmp_path / "tuning.db", trials=4, progress=True)
    (output,) = outputs
    first, *_, last = map(str, output.shown)
    assert first.startswith("0:00  tuning softmax r=8 c=32")
    assert any("building and measuring" in str(made) for made in output.shown)
    assert re.search(r"^\d+:\d\d  trial 1: ", last, re.MULTILINE)
    assert re.search(r"^stopped by +trials", last, re.MULTILINE)
    html = output.shown[-1]._repr_html_()
    assert html.startswith("<pre>0:00  tuning softmax")
    assert capsys.readouterr() == ("", "")


def test_a_suite_is_shown_too(tmp_path, capsys, outputs):
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE)
    tune_suite(suite, "cpu", tmp_path / "tuning.db", trials=4, progress=True)
    (output,) = outputs
    assert "weighted sum of latencies" in str(output.shown[-1])
    outputs.clear()
    sys.modules.pop("IPython")
    tune_suite(suite, "cpu", tmp_path / "tuning.db", trials=4, progress=True, effort="quick")
    assert re.search(r"^objective +weighted sum", capsys.readouterr().out, re.MULTILINE)


def test_effort_sets_what_is_not_given(tmp_path):
    seen = []

    def stop(progress):
        seen.append(progress)
        raise KeyboardInterrupt

    for effort, trials, seconds in (("quick", 32, 20), ("default", 128, 60), ("thorough", 512, 7)):
        given = {"seconds": 7} if effort == "thorough" else {}
        tune(SMALL, "cpu", tmp_path / "x.db", effort=effort, on_progress=stop, **given)
        assert (seen[-1].trials_allowed, seen[-1].seconds_allowed) == (trials, seconds)


@pytest.mark.parametrize("function", [tune, tune_suite])
def test_an_unknown_effort_is_refused(function, tmp_path):
    what = SMALL if function is tune else "bert-base"
    with pytest.raises(InputError, match="effort='full' is unknown; allowed: quick, default, th"):
        function(what, "cpu", tmp_path / "x.db", effort="full")
    assert not (tmp_path / "x.db").exists()
