"""Bad input: one line on standard error, exit code 2, and nothing is made."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.scheduler.cli.command import SMALL, one_line, start
from tilewright.measure.database import Database
from tilewright.scheduler.cli.app import run

LONG = "9" * 5000
BEYOND = str(2**63)  # what a database has no room for
HEADS = ("attention", "b=1", "h=4", "i=8", "j=8", "d=8")

GROUPED = ("grouped_matmul", "t=4", "n=4", "k=4")


def lengths(entries: str, dtype: str = "int32[b]") -> tuple[str, ...]:
    """A decode of as many keys as come with a call."""
    text = f"n: {dtype}({entries}); where j < n[b]; y[b,e] = sum[j](softmax[j](sum[d](q[b,d] "
    text += "* k[b,j,d])) * v[b,j,e])"
    return text, "b=2", "j=8", "d=8", "e=8"


def pages(size: str = "16", table: str = "index < 9") -> tuple[str, ...]:
    """A decode whose keys are in pages that a table chooses."""
    text = f"t: int32[2,4]({table}); k: float32[9,16,8]; y[b,e] = sum[j](softmax[j](sum[d](q[b,d] "
    text += f"* k[t[b,j // {size}],j % 16,d])) * v[b,j,e])"
    return text, "b=2", "j=64", "d=8", "e=8"


@pytest.mark.parametrize("command", ["tune", "query"])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("conv", "m=1"), "unknown operator 'conv'; did you mean conv2d? known: argmax, attention"),
        (("y[i,j] = sum[k](a[i,k] * b[k,j])", "i=4", "j=4"), "'k' is no axis"),
        (("matmul", "m=1", "n=2"), "missing: k"),
        ((*HEADS, "kv=3"), "kv=3 does not divide h=4; allowed: its divisors"),
        ((*HEADS, "window=-3"), "window=-3 is out of range; allowed: from 0 on"),
        (pages(size="0"), "an index is divided by 0; allowed: whole numbers from 1 on"),
        (pages(size="-16"), "an index is divided by -16; allowed: whole numbers from 1 on"),
        (pages(size="8"), "index 'j // 8' of dimension 1 runs from 0 to 7"),
        (pages(table="index < 10"), "index 't[b, j // 16]' of dimension 0 runs from 0 to 9"),
        (pages(table="index < -1"), "-1 is out of range; allowed: 1 to 2147483648"),
        (lengths("index < -1"), "-1 is out of range; allowed: 1 to 2147483648"),
        (lengths("index < 0"), "0 is out of range; allowed: 1 to 2147483648"),
        (lengths("index < 9999999999"), "allowed: 1 to 2147483648"),
        (
            lengths("index < 9", "int8[1]"),
            "n[b] in 'where j < n[b]': index 'b' of dimension 0 runs",
        ),
        (lengths("index < 900", "int8[b]"), "indices below 900 in int8; allowed: an integer dtype"),
        ((*HEADS[:3], "i=9", "j=8", "d=8"), "i=9 is out of range; allowed: 1 to 8, the positions"),
        ((*HEADS[:3], "i=8", "j=-8", "d=8"), "j=-8 is out of range; allowed: above 0"),
        ((*HEADS, "kv=-2"), "kv=-2 does not divide h=4; allowed: its divisors"),
        (("embedding", "t=4", "d=4", "words=-1"), "words=-1 is out of range; allowed: above 0"),
        ((*GROUPED, "experts=-2"), "experts=-2 is out of range; allowed: above 0"),
        ((*GROUPED, "experts=2", "rows=-2"), "rows=-2 is out of range; allowed: above 0"),
        (("matmul", "m=0", "n=2", "k=3"), "m=0 is out of range"),
        (("matmul", "m=1", "n=-2", "k=3"), "n=-2 is out of range"),
        (("matmul", "m=1", "n=2", "k=3.5"), "k='3.5' is not a whole number"),
        (("matmul", "m=1", "n=2", "k="), "k='' is not a whole number"),
        (("matmul", "m=1", "n=2", "k=3", "dtype=float31"), "unknown dtype 'float31'"),
        (("matmul", "m=1", "n=2", "k=3", "a=diagonal"), "layout a='diagonal' is unknown"),
        (("matmul", "m=1", "n=2", "k=3", "colour=red"), "no parameter 'colour'"),
        (("matmul", "m=1", "n=2", "k=3", "operator=x"), "no parameter 'operator'"),
        (("matmul", "m=1", "n=2", "k=3", "m=4"), "'m' is given twice"),
        (("matmul", "m=1", "n=2", "k=3", "relu"), "'relu' is not a parameter"),
        (("matmul", "m=1", "n=2", "k=3", "epilogue=relu(x"), "epilogue"),
        (("matmul", "m=1", "n=2", "k=3", "epilogue=__import__('os')"), "epilogue"),
        ((*SMALL, "--target", "tpu"), "unknown target 'tpu'"),
        ((*SMALL, "--target", "cuda:sm_12"), "sm_12"),
        (
            (*SMALL, "--target", "cuda:sm_90a", "--threads", "2"),
            "threads=2 is for the target cpu",
        ),
        ((*SMALL, "--threads", "0"), "threads=0 is out of range"),
        ((*SMALL, "--threads", "100000"), "threads=100000 is out of range"),
        ((*SMALL, "--threads", "two"), "Invalid value 'two' for '--threads'"),
        ((*SMALL, "--threads=two"), "Invalid value 'two' for '--threads'"),
        ((*SMALL, "--format", "yaml"), "for '--format': 'yaml' is not one of 'table', 'json'"),
        ((*SMALL, "--speed"), "No such option: --speed"),
        ((*SMALL, "--db", "notes.txt"), "notes.txt cannot be used"),
        ((*SMALL, "--db", "."), "database . is no file"),
        ((*SMALL, "--db", "mysql://host/x"), "mysql"),
        ((), "Missing argument"),
    ],
)
def test_bad_requests(here, capsys, command, words, says):
    assert run([command, *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in one_line(said.err)
    assert [path.name for path in here.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tune", *SMALL, "--trials", "0"), "'--trials'"),
        (("tune", *SMALL, "--trials", BEYOND), f"trials={BEYOND} is out of range; allowed: whole"),
        (("tune", *SMALL, "--patience", BEYOND), f"patience={BEYOND} is out of range"),
        (("tune", *SMALL, "--seed", BEYOND), f"Invalid value '{BEYOND}' for '--seed'"),
        (("tune", *SMALL, "--search", "luck"), "unknown search 'luck'; allowed: evolutionary, "),
        (
            ("tune", *SMALL, "--search", "random", "--model", "model.ubj"),
            "search=random follows no model; allowed with one: evolutionary",
        ),
        (("tune", *SMALL, "--seconds", "-1"), "Invalid value '-1' for '--seconds'"),
        (("resume",), "Missing argument 'session'; see tilewright resume --help"),
        (("db", "vacuum", "--format", "json"), "--format; see tilewright db vacuum --help"),
        (("list", "--format", "csv"), "'--format'"),
        (("tune", "matmul", "m=9999999", "n=9999999", "k=1"), "GiB of memory"),
        (("tune", *SMALL, "--db", "no/folder/x.db"), "cannot be used"),
        (("query", *SMALL, "--format", "xml"), "'--format'"),
        (("list", "--db", "missing.db"), "no database at missing.db"),
        (("list", "--db", "notes.txt"), "notes.txt cannot be used"),
        (("export", "--db", "missing.db", "out.jsonl"), "no database at missing.db"),
        (("import", "missing.jsonl"), "no file missing.jsonl"),
        (("import", "/dev/null"), "/dev/null is no regular file; allowed: an export, plain"),
        (("train", "--db", "missing.db"), "no database at missing.db"),
        (("train", "--db", "notes.txt"), "notes.txt cannot be used"),
        (("evaluate", "missing.json", "--db", "missing.db"), "missing"),
        (("explain", "missing.json"), "cannot read model missing.json: No such file"),
        (("explain", "softmax"), "softmax needs r, c; missing: r, c"),
        (("doctor", "--threads", "100000"), "threads=100000"),
        (("db", "stats", "--db", "missing.db"), "no database at missing.db"),
        (("db", "vacuum", "--db", "notes.txt"), "notes.txt cannot be used"),
        (("db", "merge", "missing.db", "--into", "new.db"), "no database at missing.db"),
        (("db", "merge", "notes.txt", "--into", "new.db"), "notes.txt cannot be used"),
        (("db", "merge", "--into", "new.db"), "Missing argument"),
        (("db", "merge", "notes.txt"), "Missing option '--into'"),
        (("db", "dance"), "No such command 'dance'; allowed: stats, vacuum, merge"),
        (("dance",), "No such command 'dance'; allowed: tune, resume, query,"),
    ],
)
def test_bad_commands(here, capsys, arguments, says):
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert says in one_line(said.err)
    assert len(said.err) < 1000
    assert [path.name for path in here.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--db", "postgresql://me:secret@127.0.0.1:1/x"), "Connection refused"),
        (("--db", "postgresql://me@127.0.0.1:1/x?password=secret"), "Connection refused"),
        (("--executor", "ray", "--address", "ray://me:secret@127.0.0.1:1"), "no Ray cluster"),
    ],
)
def test_what_refuses_is_said_without_the_password(here, capsys, options, says):
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    pytest.importorskip("ray", reason="needs the extra ray")
    assert run(["tune", *SMALL, "--seconds", "2", *options]) == 2
    said = one_line(capsys.readouterr().err)
    assert says in said
    assert "secret" not in said


def test_a_driver_that_is_missing_is_said_with_what_installs_it(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert run(["query", *SMALL, "--db", "postgresql://127.0.0.1:1/no_driver"]) == 2
    said = one_line(capsys.readouterr().err)
    assert "a PostgreSQL database needs psycopg: pip install 'tilewright[postgres]'" in said


@pytest.mark.parametrize("command", ["tune", "query"])
def test_no_compiler(here, capsys, monkeypatch, command):
    monkeypatch.setenv("CC", "/nowhere/gcc")
    assert run([command, *SMALL]) == 2
    assert "no C compiler found (looked for CC='/nowhere/gcc')" in one_line(capsys.readouterr().err)


def test_too_little_to_train_on(here, capsys):
    Database(here / "tuning.db").close()
    assert run(["train"]) == 2
    assert "0 measured schedules; training needs at least 8" in one_line(capsys.readouterr().err)


def test_models_that_are_not_ours(tuned, here, capsys):
    db = str(tuned[0])
    (here / "notes.txt.json").write_text("{}")
    assert run(["evaluate", "notes.txt", "--db", db]) == 2
    assert "not a Tilewright model" in one_line(capsys.readouterr().err)
    assert run(["evaluate", "missing.json", "--db", db]) == 2
    assert "cannot read model missing.json" in one_line(capsys.readouterr().err)
    assert run(["train", "--db", db, "--out", "no/folder/model.json"]) == 2
    assert "cannot write model" in one_line(capsys.readouterr().err)


def test_unwritable_and_foreign_files(tuned, here, capsys):
    assert run(["export", "--db", str(tuned[0]), "no/folder/out.jsonl"]) == 2
    assert "cannot write" in one_line(capsys.readouterr().err)
    assert run(["import", "notes.txt", "--db", "new.db"]) == 2
    assert "notes.txt is not an export" in one_line(capsys.readouterr().err)
    assert not (here / "new.db").exists()


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (("export", "copy.db"), "an export"),
        (("export", "copy.db", "--format", "csv"), "an export"),
        (("train", "--out", "copy.db"), "a model"),
    ],
)
def test_nothing_takes_the_place_of_a_database(tuned, here, capsys, command, what):
    """Whoever takes what ``export`` writes for what it reads would lose all that was measured."""
    shutil.copy(tuned[0], here / "copy.db")
    before = (here / "copy.db").read_bytes()
    assert run([*command, "--db", "copy.db"]) == 2
    said = one_line(capsys.readouterr().err)
    assert f"'copy.db' is a database, which {what} must not replace" in said
    assert (here / "copy.db").read_bytes() == before


def test_a_real_process_ends_the_same_way(here):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("tune", "matmul", "m=0", "n=1", "k=1", cwd=here, **pipes) as process:
        out, err = process.communicate(timeout=250)
    assert (process.returncode, out) == (2, "")
    assert "m=0 is out of range" in one_line(err)
