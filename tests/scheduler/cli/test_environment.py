"""A machine that lacks something: one line on standard error, and no traceback."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys

import pytest

from tests.measure.databases.test_read_only import seal, without_override
from tests.scheduler.cli.command import PATHS, SMALL, start

READING = """
import json, sys
from tilewright.scheduler.cli.app import run
from tilewright import best

path, *commands = map(json.loads, sys.argv[1:])
for command in commands:
    if code := run([*command, "--db", path]):
        sys.exit(f"{command} ended with {code}")
best("matmul m=64 n=64 k=64", "cpu", path)
"""
QUERY = ("query", *SMALL, "--db", "none.db")


def outcome(arguments, cwd, **options) -> tuple[int, str, str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    with start(*arguments, cwd=cwd, **pipes) as process:
        out, err = process.communicate(timeout=200)
    return process.returncode, out, err


def remarks(err: str) -> list[str]:
    """The lines of standard error, all of which must be remarks of ours."""
    lines = err.splitlines()
    assert all(line.startswith("tilewright: ") for line in lines), err
    return lines


def test_a_full_standard_output(tmp_path):
    with open("/dev/full", "w") as full:
        code, _, err = outcome(QUERY, tmp_path, stdout=full)
    assert code == 2
    assert "No space left on device" in remarks(err)[-1]


def test_what_an_encoding_lacks_is_spelled_out(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    code, out, _ = outcome(("tune", *SMALL, "--trials", "1", "--db", "ä.db"), tmp_path)
    assert code == 0
    assert r"kept in \xe4.db" in out


def test_a_full_standard_error(tmp_path):
    with open("/dev/full", "w") as full:
        code, out, _ = outcome(("query", "conv"), tmp_path, stderr=full)
    assert (code, out) == (2, "")


def test_a_closed_standard_output(tmp_path):
    code, _, err = outcome(QUERY, tmp_path, stdout=None, preexec_fn=lambda: os.close(1))
    assert code == 0
    remarks(err)


def test_a_closed_standard_error(tmp_path):
    """What would go there goes nowhere, and not to what is opened next."""
    arguments = ("import", "x.jsonl", "--db", "x.db")
    (tmp_path / "x.jsonl").write_text("no export\n")
    code, out, _ = outcome(arguments, tmp_path, stderr=None, preexec_fn=lambda: os.close(2))
    assert (code, out) == (2, "")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 0", "predefines no __GNUC__"),
        ("echo nothing of the kind", "predefines no __GNUC__"),
        ("printf '\\377\\376'", "predefines no __GNUC__"),
        ("exit 1", "does not compile an empty file"),
    ],
)
def test_a_compiler_that_is_none(tmp_path, monkeypatch, script, says):
    fake = tmp_path / "cc"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    code, out, err = outcome(QUERY, tmp_path)
    assert (code, out) == (2, "")
    assert says in remarks(err)[-1]


SLOW_LIMITS = [pytest.param(m, marks=pytest.mark.slow) for m in (64, *range(640, 1100, 24))]


@pytest.mark.parametrize("mebibytes", [155, 639, 640, *SLOW_LIMITS])
def test_too_little_memory(tmp_path, monkeypatch, mebibytes):
    """It is enough, or there is one line: no traceback, and nothing hangs."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))

    arguments = ("tune", *SMALL, "--trials", "12", "--seconds", "100", "--db", "x.db")
    code, _, err = outcome(arguments, tmp_path, preexec_fn=limit)
    assert code in (0, 2), err
    assert bool(remarks(err)) == (code == 2)


def test_every_command_that_reads_a_database_reads_one_that_nobody_may_write(tuned, tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    shutil.copy(tuned[0], folder)
    seal(folder)
    commands = [
        ["query", *SMALL],
        ["list"],
        ["list", "--sessions"],
        ["db", "stats"],
        ["export", "log.jsonl"],
        ["export", "log.csv"],
        ["train", "--out", "model.json"],
        ["evaluate", "model.json"],
        ["explain", "model.json"],
        ["explain", *SMALL],
    ]
    words = map(json.dumps, [str(folder / "tuning.db"), *commands])
    done = subprocess.run(
        [sys.executable, "-c", READING, *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": PATHS},
        preexec_fn=without_override,
        capture_output=True,
        text=True,
    )
    folder.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(folder) == ["tuning.db"]
