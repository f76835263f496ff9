"""Whatever a supervised command starts ends with it, or with the process that asked for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.measure.sleepers import appear, gone
from tilewright.measure.cpu.compilation import Compilations
from tilewright.measure.cpu.keeper import end, supervised


@pytest.mark.parametrize(
    ("script", "code"), [("exit 3", 3), ("exit 0", 0), ("kill -SEGV $$", -11), ("kill $$", -15)]
)
def test_it_ends_as_the_command_does(script, code):
    assert subprocess.run(supervised(["sh", "-c", script])).returncode == code


def test_a_command_that_does_not_exist_ends_as_in_a_shell():
    assert subprocess.run(supervised(["no such command"])).returncode == 127


def test_what_the_command_leaves_behind_ends_with_it():
    script = "setsid sleep 4001 & setsid sh -c 'sleep 4001; true' & sleep 0.3"
    subprocess.run(supervised(["sh", "-c", script]))
    assert gone("4001")


def test_it_ends_on_request_with_all_sessions():
    command = ["sh", "-c", "setsid sleep 4002 & sleep 4002"]
    process = subprocess.Popen(supervised(command))
    assert appear("4002", 2)
    process.send_signal(signal.SIGSTOP)
    end(process.pid)
    assert process.wait(200) == -signal.SIGKILL
    assert gone("4002")


def test_a_command_that_is_stopped_is_ended():
    process = subprocess.Popen(supervised(["sh", "-c", "kill -STOP $$; sleep 4003"]))
    assert process.wait(200) == -signal.SIGKILL


def test_limits_hold_for_the_command_and_its_children():
    script = "ulimit -v; ulimit -t"
    done = subprocess.run(
        supervised(["sh", "-c", script], 1 << 30, 7), capture_output=True, text=True
    )
    assert done.stdout.split() == [str(1 << 20), "7"]


STUCK = """#!/bin/sh
case "$*" in *unit*.c*) sleep SECONDS & sleep SECONDS;; esac
exec gcc "$@"
"""
BUILD = """
    import sys
    from tilewright.measure.cpu.builder import CBuilder
    from tests.measure.cpu.c_kernels import good, target
    CBuilder(target()).build([good("a")])
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_stuck_compiler_ends_with_the_process_that_started_it(tmp_path: Path, number):
    seconds = str(4010 + number)
    fake = tmp_path / "cc"
    fake.write_text(STUCK.replace("SECONDS", seconds))
    fake.chmod(0o700)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(BUILD)], env=os.environ | {"CC": str(fake)}
    )
    assert appear(seconds, 2)
    process.send_signal(number)
    process.wait(200)
    assert gone(seconds)


def test_a_compiler_that_takes_too_long_leaves_nothing(tmp_path: Path):
    outcome = Compilations().run(["sh", "-c", "setsid sleep 4004 & sleep 4004"], tmp_path, 0.5)
    assert outcome.timed_out
    assert outcome.text == "no end within 0.5 s"
    assert gone("4004")
