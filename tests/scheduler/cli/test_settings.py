"""Settings in the environment and in pyproject.toml, and what the command line makes of them."""

from __future__ import annotations

import inspect

import pytest

import tilewright
from tests.scheduler.cli.command import ask
from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import attempt, measured
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.doctor import diagnose
from tilewright.spaces.errors import InputError
from tilewright.spaces.settings import Default, setting
from tilewright.spaces.target import as_target


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with settings, seen from a folder in it."""
    for name in ("TILEWRIGHT_DB", "TILEWRIGHT_TARGET"):
        monkeypatch.delenv(name, raising=False)
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    (inner / "pyproject.toml").write_text("[tool.other]\nname = 'tilewright'\n")
    write(tmp_path, 'db = "kernels.db"\ntarget = "cuda:sm_90a"')
    with Database(tmp_path / "kernels.db") as database:
        database.record(attempt(measured(1, 1.0)))
    return tmp_path


def write(folder, text):
    (folder / "pyproject.toml").write_text(f"[tool.tilewright]\n{text}\n")


def test_a_project_gives_the_database_and_the_target(project, capsys):
    assert "1" in ask(capsys, "list")
    assert "sm_90a" in ask(capsys, "query", "matmul", "m=64", "n=64", "k=64")
    assert as_target(Default.TARGET).kind == "cuda"
    assert tilewright.query("matmul m=64 n=64 k=64").target.kind == "cuda"
    for call in (tilewright.best, tilewright.query, tilewright.tune, tilewright.tune_suite):
        assert inspect.signature(call).parameters["database"].default is Default.DATABASE


def test_the_environment_comes_first_and_the_command_line_before_it(project, capsys, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_DB", "none.db")
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:sm_80")
    assert run(["list"]) == 2
    assert "there is no database at none.db" in capsys.readouterr().err
    assert ask(capsys, "list", "--db", str(project / "kernels.db"))
    assert "sm_80" in ask(capsys, "query", "matmul", "m=64", "n=64", "k=64")
    line = ask(capsys, "query", "matmul", "m=64", "n=64", "k=64", "--target", "cuda:sm_90a")
    assert "sm_90a" in line


def test_threads_are_those_of_cpu_kernels_that_nobody_gave(project):
    write(project, "threads = 2")
    assert as_target("cpu").threads == 2
    assert as_target("cpu:threads=1").threads == 1
    assert as_target("cuda:sm_90a").kind == "cuda"


def test_the_doctor_says_where_each_is_from(project, monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_DB", "postgresql://me:secret@host/db")
    found = {each.name: each.text for each in diagnose() if each.name.startswith("setting")}
    assert found == {
        "setting db": "postgresql://me:secret@host/db, from TILEWRIGHT_DB",
        "setting target": f"cuda:sm_90a, from {project / 'pyproject.toml'}",
        "setting threads": "1, from the default",
    }
    assert "me:***@host" in ask(capsys, "doctor")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("db = 3", "db in [tool.tilewright] of {} is 3; allowed: text"),
        ('target = "gpu"', "target in [tool.tilewright] of {} is 'gpu'; allowed: cpu, cuda"),
        ("threads = 0", "threads in [tool.tilewright] of {} is 0; allowed: a whole number from 1"),
        ("tread = 2", "unknown key 'tread' in [tool.tilewright] of {}; did you mean threads? "),
        ("db = ", "{} is no TOML: "),
    ],
)
def test_a_bad_value_is_one_line(project, capsys, text, said):
    write(project, text)
    assert run(["query", "matmul", "m=64", "n=64", "k=64"]) == 2
    said_here = capsys.readouterr().err
    assert said.format(project / "pyproject.toml") in said_here
    assert said_here.count("\n") == 1
    assert run(["--version"]) == 0  # nothing else reads them


def test_a_bad_target_of_the_environment_is_named(project, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "gpu")
    with pytest.raises(InputError, match="TILEWRIGHT_TARGET is 'gpu'; allowed: cpu, cuda"):
        setting("target")
