"""Tuning on machines that fail: nothing of it is held against a schedule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from measure.database import Database
from measure.measurement import ErrorKind, Measurement, Status
from spaces.operators import workload
from spaces.target import detect_target

FULL_DISK = """#!/bin/sh
case "$*" in *unit*.c*) echo "No space left on device" >&2; exit 1;; esac
exec gcc "$@"
"""
KILLED = """#!/bin/sh
case "$*" in *unit*.c*) kill -KILL $$;; esac
exec gcc "$@"
"""
COMMAND = "from scheduler.cli import main; main()"
TINY = ("m=3", "n=1", "k=1")
MIDDLE = ("m=64", "n=64", "k=64")


def tune(database: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMAND, "tune", "matmul", *words]
    return subprocess.Popen(
        [*command, "--db", str(database)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    )


def compiler(folder: Path, script: str) -> str:
    path = folder / "fakecc"
    path.write_text(script)
    path.chmod(0o700)
    return str(path)


def measured(path: Path, parameters: tuple[str, ...]) -> list[Measurement]:
    extents = {word[0]: int(word[2:]) for word in parameters}
    with Database(path) as database:
        known = database.records(workload("matmul", **extents), detect_target("cpu"))
        return [record.measurement for record in known]


def test_a_full_disk_under_the_compiler_ends_the_run_and_spoils_nothing(tmp_path: Path) -> None:
    path, fake = tmp_path / "p.db", compiler(tmp_path, FULL_DISK)
    words = (*TINY, "--trials", "1000", "--seconds", "120")
    start = time.monotonic()
    process = tune(path, *words, CC=fake)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.count("\n") == 1
    assert "this machine failed, not the kernels: No space left on device" in said
    assert time.monotonic() - start < 60
    lost = measured(path, TINY)
    assert {m.status for m in lost} == {Status.LOST}
    process = tune(path, *words)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert any(m.ok for m in measured(path, TINY)[len(lost) :])


def test_a_killed_compiler_is_named(tmp_path: Path) -> None:
    process = tune(tmp_path / "p.db", *TINY, CC=compiler(tmp_path, KILLED))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "the compiler was killed by SIGKILL" in said


def servers(process: int) -> list[psutil.Process]:
    """The measuring server, without the processes of its candidates."""
    found = []
    for child in psutil.Process(process).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.name().startswith("server"):
                found.append((child, child.ppid()))
    known = {child.pid for child, _ in found}
    return [child for child, parent in found if parent not in known]


def test_servers_killed_in_a_run_cost_no_trial(tmp_path: Path) -> None:
    path, killed = tmp_path / "p.db", set[int]()
    process = tune(path, *MIDDLE, "--trials", "64", "--seconds", "300")
    while len(killed) < 4 and process.poll() is None:
        for server in servers(process.pid):
            if server.pid not in killed:
                server.send_signal(signal.SIGKILL)
                killed.add(server.pid)
        time.sleep(0.1)
    process.communicate(timeout=300)
    assert len(killed) >= 2
    assert process.returncode == 0
    searched = [m for m in measured(path, MIDDLE) if m.round == "search"]
    assert len(searched) == 64
    machines = {ErrorKind.CRASH, ErrorKind.DEVICE, ErrorKind.WORKER_LOST}
    assert not machines & {m.error_kind for m in searched}
