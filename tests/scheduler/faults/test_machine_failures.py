"""Tuning on machines that fail: nothing of it is held against a schedule."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind, Measurement, Status
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

FULL_DISK = """#!/bin/sh
case "$*" in *unit*.c*) echo "No space left on device" >&2; exit 1;; esac
exec gcc "$@"
"""
KILLED = """#!/bin/sh
case "$*" in *unit*.c*) kill -KILL $$;; esac
exec gcc "$@"
"""
COMMAND = "from tilewright.scheduler.cli import main; main()"
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
    words = (*TINY, "--seconds", "600", "--trials")
    process = tune(path, *words, "1000", CC=fake)
    _, said = process.communicate(timeout=250)
    assert process.returncode == 1
    assert said.count("\n") == 1
    assert "this machine failed, not the kernels: No space left on device" in said
    lost = measured(path, TINY)
    assert {m.status for m in lost} == {Status.LOST}
    process = tune(path, *words, "4")
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


def kill_a_server(process: int) -> None:
    """As soon as there is one."""
    while True:
        for server in servers(process):
            with suppress(psutil.NoSuchProcess):
                return server.kill()
        time.sleep(0.01)


def test_servers_killed_in_a_run_cost_no_trial(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    process = tune(path, *MIDDLE, "--trials", "10000", "--seconds", "600", "--format", "json")
    assert process.stdout is not None
    for trials in (4, 20, 36, 64):
        while json.loads(process.stdout.readline()).get("trials", 0) < trials:
            pass
        if trials < 64:
            kill_a_server(process.pid)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=200)
    assert process.returncode == 128 + signal.SIGINT
    searched = [m for m in measured(path, MIDDLE) if m.round == "search"]
    assert len(searched) == json.loads(said.splitlines()[-1])["trials"] >= 64
    machines = {ErrorKind.CRASH, ErrorKind.DEVICE, ErrorKind.WORKER_LOST}
    assert not machines & {m.error_kind for m in searched}
