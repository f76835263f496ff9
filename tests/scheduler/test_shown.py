"""How objects print in Python and in notebooks, and what is said where nothing runs."""

from __future__ import annotations

import sys

import pytest

import tilewright
from tests.scheduler.cli.command import ask, without
from tilewright.measure.database import Database
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.cli.commands.tune import _budget
from tilewright.scheduler.query import query
from tilewright.scheduler.tuning.budget import Effort
from tilewright.spaces.named import operator
from tilewright.spaces.operators import workload


def test_objects_print_in_at_most_five_lines(tmp_path):
    found = query("matmul m=64 n=64 k=64 epilogue='relu(x + bias[n])'", "cpu", None)
    with Database(tmp_path / "some.db") as database:
        shown = [repr(each) for each in (found, found.schedule, found.space, found.workload)]
        shown += [
            repr(database),
            repr(operator("softmax", r=4, c=4)),
            repr(workload("y[i] = x[i]", i=4)),
        ]
    for text in shown:
        assert text.startswith("<")
        assert len(text.splitlines()) <= 5
        assert len(text) < 1200
    assert "some.db" in shown[4]
    assert "predicted" in shown[0]
    assert found._repr_html_().startswith("<pre>&lt;Answer matmul")


def test_effort_gives_what_nobody_says():
    what = workload("matmul m=4 n=4 k=4")
    quick = _budget(what, Effort.QUICK, None, None, None)
    assert (quick.trials, quick.seconds) == (32, 20)
    thorough = _budget(what, Effort.THOROUGH, 7, None, None)
    assert (thorough.trials, thorough.seconds) == (7, 300)


def test_a_table_of_another_format_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Database("tuning.db").close()
    assert run(["export", "x.xlsx"]) == 2
    assert "allowed: .jsonl, .csv, .parquet" in capsys.readouterr().err
    assert not (tmp_path / "x.xlsx").exists()
    assert ask(capsys, "export", "x.json")


def test_another_system_is_one_line(tmp_path, monkeypatch):
    code, out, err = without({"fcntl"}, "--version", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert (
        err
        == f"tilewright: Tilewright needs Linux, and this is {sys.platform}; on Windows use "
        + ("WSL, or a container\n")
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ImportError, match="needs Linux, and this is darwin"):
        tilewright.__getattr__("best")
