"""``tilewright list`` and ``tilewright export`` show what is asked for only."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path

import pytest

from tests.scheduler.cli.command import TRIALS, ask, written_to_terminal
from tests.scheduler.screen import left_on_screen
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind, Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.cli.app import run
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target

DAY = 86400.0


def record(text: str, threads: int, place: int, latency: float | None, ago: float) -> Record:
    status = Status.ERROR if latency is None else Status.OK
    kind = None if latency else ErrorKind.WRONG
    made = Measurement(
        Schedule("rows", (("unroll", place),)),
        status,
        latency,
        error_kind=kind,
        started_at=time.time() - ago,
    )
    return Record(workload(text), detect_target("cpu", threads), "rows 1", made)


@pytest.fixture
def filled(tmp_path, monkeypatch):
    """A database: softmax on one and on two threads, matmul of ten days ago with a failure."""
    monkeypatch.chdir(tmp_path)
    with Database("tuning.db") as database:
        database.record_all(
            [
                record("softmax r=8 c=32", 1, 1, 3e-6, 0),
                record("softmax r=8 c=32", 1, 2, 2e-6, DAY),
                record("softmax r=8 c=32", 2, 1, 1e-6, 0),
                record("matmul m=64 n=64 k=64", 1, 1, 9e-6, 10 * DAY),
                record("matmul m=64 n=64 k=64", 1, 2, None, 10 * DAY),
                record('"y[i] = 2 * x[i]" i=8', 1, 1, 5e-6, 2 * DAY),
            ]
        )


def listed(capsys, *options: str) -> list[tuple[str, int]]:
    found = json.loads(ask(capsys, "list", *options, "--format", "json"))
    return [(each["workload"].split()[0], each["target"]["threads"]) for each in found]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), ['"y[i]1', "matmul1", "softmax1", "softmax2"]),
        (("--operator", "softmax"), ["softmax1", "softmax2"]),
        (("--operator", "program"), ['"y[i]1']),
        (("--target", "cpu:threads=2"), ["softmax2"]),
        (("--target", "2 THREADS"), ["softmax2"]),
        (("--target", "cuda"), []),
        (("--since", "3d"), ['"y[i]1', "softmax1", "softmax2"]),
        (("--since", "36h", "--operator", "softmax"), ["softmax1", "softmax2"]),
        (("--since", "2001-01-01"), ['"y[i]1', "matmul1", "softmax1", "softmax2"]),
        (("--since", "2999-01-01 10:00"), []),
        (("--failed",), ["matmul1"]),
        (("--sort", "best"), ["softmax2", "softmax1", '"y[i]1', "matmul1"]),
        (("--sort", "trials", "--limit", "2"), ["matmul1", "softmax1"]),
        (("--sort", "failures", "--limit", "1"), ["matmul1"]),
        (("--sort", "rate", "--limit", "1"), ["matmul1"]),
    ],
)
def test_list_shows_what_is_asked_for(filled, capsys, options, found):
    names = [f"{name}{threads}" for name, threads in listed(capsys, *options)]
    assert (names if "--sort" in options else sorted(names)) == found


def rows(capsys, *options: str) -> list[dict[str, str]]:
    text = ask(capsys, "export", "-", "--format", "csv", *options)
    return list(csv.DictReader(io.StringIO(text)))


def test_a_table_is_selected_sorted_and_cut(filled, capsys):
    softmax = rows(capsys, "--operator", "softmax", "--sort", "latency_s")
    assert [float(row["latency_s"]) for row in softmax] == [1e-6, 2e-6, 3e-6]
    assert "workload.m" not in softmax[0], "columns are those that its rows need"
    assert len(rows(capsys)) == 6
    (failed,) = rows(capsys, "--failed")
    assert (failed["status"], failed["error_kind"]) == ("error", "wrong_result")
    assert [row["operator"] for row in rows(capsys, "--limit", "3")] == ["program"] + 2 * ["matmul"]
    *_, last = rows(capsys, "--sort", "latency_s")
    assert last["latency_s"] == "", "what has no value comes last"
    fastest = rows(capsys, "--sort", "latency_s", "--limit", "2")
    assert [float(row["latency_s"]) for row in fastest] == [1e-6, 2e-6]


def exported(path: Path) -> list[dict]:
    """The records in an export."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line.get("type") == "measurement"]


def test_exported_lines_are_selected(filled, capsys):
    said = ask(capsys, "export", "some.jsonl", "--operator", "softmax", "--since", "12h")
    assert said == "2 records written to some.jsonl\n"
    assert {line["score"] for line in exported(Path("some.jsonl"))} == {1e-6, 3e-6}
    assert ask(capsys, "export", "new.jsonl", "--limit", "1").startswith("1 record ")
    assert [line["score"] for line in exported(Path("new.jsonl"))] == [5e-6]


def test_exported_lines_bring_the_runs_of_their_records_only(tuned, tmp_path, capsys):
    path = tmp_path / "fused.jsonl"
    with Database(tuned[0], create=False) as database:
        newest = [record.run for record in database.records()][-1]
    ask(capsys, "export", str(path), "--limit", str(TRIALS), "--db", str(tuned[0]))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["key"] for line in lines if line.get("type") == "run"] == [newest]


def test_sessions_are_selected(tuned, capsys):
    options = ("list", "--sessions", "--db", str(tuned[0]), "--format", "json")
    every = json.loads(ask(capsys, *options))
    assert json.loads(ask(capsys, *options, "--limit", "1")) == every[-1:]
    assert json.loads(ask(capsys, *options, "--operator", "softmax")) == []
    assert json.loads(ask(capsys, *options, "--since", "1h", "--operator", "matmul")) == every


@pytest.mark.parametrize("columns", [80, 400])
def test_a_list_fits_a_terminal(tuned, capsys, columns):
    for options in ((), ("--sessions",)):
        arguments = ("list", *options, "--db", str(tuned[0]))
        code, written = written_to_terminal(*arguments, cwd=tuned[0].parent, columns=columns)
        lines = left_on_screen(written)
        assert code == 0
        assert max(map(len, lines)) <= columns
        assert (columns == 400) is any("gcc" in line for line in lines)
        assert len([line for line in lines if line]) == 3


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("list", "--since", "3x"), "'3x' is no time; allowed: 2026-11-28, "),
        (("list", "--since", "9999999-01-01"), "is no time"),
        (("list", "--limit", "0"), "'--limit'"),
        (("list", "--sort", "speed"), "'--sort'"),
        (("list", "--sessions", "--failed"), "--failed and --sort are for workloads"),
        (("export", "x.jsonl", "--sort", "latency_s"), "--sort is for tables"),
        (("export", "x.csv", "--sort", "latencys"), "did you mean latency_s?"),
        (("export", "x.csv", "--sort", "speed"), "no column 'speed'; allowed: "),
    ],
)
def test_what_cannot_be_selected_is_refused(filled, capsys, command, why):
    assert run(command) == 2
    assert why in capsys.readouterr().err
