"""``tilewright export`` as tables, and what it says where it cannot."""

from __future__ import annotations

import csv
import os
import subprocess

import pytest

from tests.databases import empty
from tests.scheduler.cli.command import ask, one_line, start, without
from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import attempt, measured
from tilewright.scheduler.cli.app import run

LIBRARIES = {"pandas", "pyarrow", "matplotlib"}


@pytest.fixture
def known(here):
    """A database of one record, in the folder to be in."""
    with Database(empty(here)) as database:
        database.record(attempt(measured(1, 1e-3)))
    return here


def test_a_table_and_its_card(known, capsys):
    said = ask(capsys, "export", "x.csv", "--format", "csv")
    assert said == "1 record written to x.csv, and what they are to x.csv.md\n"
    with (known / "x.csv").open() as file:
        [row] = csv.DictReader(file)
    assert (row["latency_s"], row["contraction.packed"]) == ("0.001", "true")
    assert "tuning.db" in (known / "x.csv.md").read_text()
    assert "--features" not in said


def test_plain_exports_are_as_before(known, capsys):
    assert ask(capsys, "export", "x.jsonl") == "1 record written to x.jsonl\n"
    ask(capsys, "export", "y.jsonl", "--format", "jsonl")
    assert (known / "x.jsonl").read_bytes() == (known / "y.jsonl").read_bytes()
    assert not (known / "x.jsonl.md").exists()


@pytest.mark.parametrize("name", ["x.csv", "X.CSV", "x.parquet"])
def test_the_ending_of_a_file_chooses_a_table_where_nobody_does(known, capsys, name):
    pytest.importorskip("pyarrow", reason="needs the extra data")
    ask(capsys, "export", name)
    ask(capsys, "export", f"{name}.jsonl")
    kind = name[2:].lower()
    ask(capsys, "export", f"chosen.{kind}", "--format", kind)
    assert (known / name).read_bytes() == (known / f"chosen.{kind}").read_bytes()
    assert (known / f"{name}.jsonl").read_bytes().startswith(b'{"format":"tilewright')


def test_csv_needs_no_library_and_parquet_says_which(known):
    code, _, err = without(LIBRARIES, "export", "x.csv", "--format", "csv", "--features", cwd=known)
    assert (code, err) == (0, "")
    files = {path.name for path in known.iterdir()}
    code, out, err = without(LIBRARIES, "export", "x.p", "--format", "parquet", cwd=known)
    assert (code, out) == (2, "")
    assert one_line(err).endswith("parquet needs pyarrow: pip install 'tilewright[data]'\n")
    assert {path.name for path in known.iterdir()} == files


def test_tuning_needs_none_of_the_extras(here):
    words = ("matmul", "m=16", "n=16", "k=16", "--trials", "2", "--db", "x.db", "-q")
    code, _, err = without(LIBRARIES, "tune", *words, cwd=here)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_a_pipe_gets_what_a_file_would(known, capsys, kind, name):
    pytest.importorskip("pyarrow", reason="needs the extra data")
    ask(capsys, "export", "file", "--format", kind)
    files = {path.name for path in known.iterdir()}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": known, "text": False}
    with start("export", name, "--format", kind, **options) as process:
        out, err = process.communicate(timeout=150)
    assert (process.returncode, out, err) == (0, (known / "file").read_bytes(), b"")
    assert {path.name for path in known.iterdir()} == files


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_a_pipe_that_nobody_reads_ends_an_export_without_a_word(known, kind, name):
    reading, writing = os.pipe()
    os.close(reading)
    options = {"stdout": writing, "stderr": subprocess.PIPE, "cwd": known}
    with start("export", name, "--format", kind, **options) as process:
        os.close(writing)
        _, err = process.communicate(timeout=150)
    assert (process.returncode, err) == (1, "")


def test_exports_go_behind_what_a_file_holds_already(known):
    (known / "all.jsonl").write_text("before\n")
    with (known / "all.jsonl").open("a") as file:
        start("export", "-", cwd=known, stdout=file, stderr=subprocess.DEVNULL).wait(150)
    before, header, *_ = (known / "all.jsonl").read_text().splitlines()
    assert (before, "format" in header) == ("before", True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("x.jsonl", "--features"), "--features is for tables"),
        (("x.xml", "--format", "xml"), "'--format'"),
        (("no/folder/x.csv", "--format", "csv"), "cannot write no/folder/x.csv"),
        ((".", "--format", "csv"), "is no file"),
        (("/dev/full",), "cannot write /dev/full: No space left"),
        (("/dev/full", "--format", "csv"), "cannot write /dev/full: No space left"),
        (("x.csv", "--format", "csv", "--db", "missing.db"), "no database at missing.db"),
        (("x.csv", "--format", "csv", "--db", "notes.txt"), "notes.txt cannot be used"),
    ],
)
def test_bad_exports(known, capsys, words, says):
    files = {path.name for path in known.iterdir()}
    assert run(["export", *words]) == 2
    assert says in one_line(capsys.readouterr().err)
    assert {path.name for path in known.iterdir()} == files


def test_a_card_takes_no_place_of_something_else(known, capsys):
    (known / "x.csv.md").mkdir()
    assert run(["export", "x.csv", "--format", "csv"]) == 2
    assert "a data card goes to a new file" in one_line(capsys.readouterr().err)
    assert not (known / "x.csv").exists()
