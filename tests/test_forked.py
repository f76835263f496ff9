"""Tests of commands that are forks: they are like processes of their own."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from tests.forked import PATHS, client


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    command = [*shlex.split(client()), *words]
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.mark.parametrize("words", [["--version"], ["show"], ["query", "matmul", "m=0"]])
def test_a_command_says_what_a_process_says(words, tmp_path):
    command = [sys.executable, "-m", "tilewright", *words]
    variables = os.environ | {"PYTHONPATH": PATHS}
    due = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=variables)
    found = run(*words, cwd=tmp_path)
    assert (found.returncode, found.stdout, found.stderr) == (
        due.returncode,
        due.stdout,
        due.stderr,
    )


ASKS = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['A'], input())"


def test_a_program_has_arguments_folder_variables_and_streams_of_its_own(tmp_path):
    found = run("-c", ASKS, "b", cwd=tmp_path, env=os.environ | {"A": "1"}, input="c\n")
    assert found.stdout == f"['b'] {tmp_path} 1 c\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import sys; sys.exit(5)", 5),
        ("1 / 0", 1),
        ("import os; os.kill(os.getpid(), 9)", 128 + signal.SIGKILL),
        ("import atexit, os; atexit.register(os._exit, 7)", 7),
    ],
)
def test_it_ends_as_a_process_does(text, code):
    found = run("-c", text)
    assert found.returncode == code
    assert ("Traceback" in found.stderr) == (code == 1)


def zombies() -> list[psutil.Process]:
    """List the zombies below this process."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += [process] * (process.status() == psutil.STATUS_ZOMBIE)
    return found


def test_none_stays_as_a_zombie():
    before = set(zombies())
    run("-c", "print(1)")
    end = time.monotonic() + 20
    while set(zombies()) - before and time.monotonic() < end:
        time.sleep(0.05)
    assert not set(zombies()) - before


def test_signals_reach_it():
    text = "import signal; print(1, flush=True); signal.pause()"
    command = [*shlex.split(client()), "-c", text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
        assert asking.stdout
        assert asking.stdout.readline() == b"1\n"
        asking.send_signal(signal.SIGINT)
        _, said = asking.communicate(timeout=60)
    assert asking.returncode == 128 + signal.SIGINT
    assert b"KeyboardInterrupt" in said


def test_it_ends_with_its_client():
    text = "import signal, os; print(os.getpid(), flush=True); signal.pause()"
    command = [*shlex.split(client()), "-c", text]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as asking:
        assert asking.stdout
        descriptor = os.pidfd_open(int(asking.stdout.readline()))
        asking.kill()
    assert select.select([descriptor], [], [], 60)[0]
    os.close(descriptor)
