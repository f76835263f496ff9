"""However a process ends, its emulator's compilers and kernels end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.measure.cuda.cuda_kernels import kernel, operand_of
from tests.measure.sleepers import appear, gone
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.cuda.emulator.toolchain import process as emulator_binary
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.kernel import Kernel

STUCK = """#!/bin/sh
sleep SECONDS & sleep SECONDS
"""
FULL_DISK = """#!/bin/sh
echo "No space left on device" >&2; exit 1
"""
INPUT = np.ones(32, np.float32)
RUN = """
    from tilewright.measure.cuda.emulator import Emulator
    from tests.measure.cuda.emulator.test_emulator_ends import INPUT, of_body
    with Emulator() as emulator:
        made = of_body("for (volatile int i = 0; ; i++);")
        emulator.build([made])
        print("built", flush=True)
        emulator.run(made, {"A": INPUT})
"""


def of_body(body: str) -> Kernel:
    return kernel("k", body, {"A": INPUT}, operand_of("C", INPUT))


def compiler(folder: Path, script: str) -> dict[str, str]:
    """The environment in which ``script`` is g++."""
    path = folder / "g++"
    path.write_text(script)
    path.chmod(0o700)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


def python(code: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], text=True, **options)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_stuck_compiler_ends_with_the_process_that_started_it(tmp_path, number):
    seconds = str(4100 + number)
    process = python(RUN, env=compiler(tmp_path, STUCK.replace("SECONDS", seconds)))
    assert appear(seconds, 2)
    process.send_signal(number)
    process.wait(100)
    assert gone(seconds)


def test_an_interrupt_ends_a_verification_while_it_compiles(tmp_path):
    words = ["verify", "matmul", "m=8", "n=8", "k=8", "--target", "cuda:sm_80", "--schedules", "40"]
    code = f"from tilewright.scheduler.cli import main; import sys; sys.argv[1:] = {words}; main()"
    process = python(code, env=compiler(tmp_path, STUCK.replace("SECONDS", "4150")))
    assert appear("4150", 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(100) == 130
    assert gone("4150")


def test_a_kernel_that_hangs_ends_with_the_process_that_started_it():
    process = python(RUN, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == "built\n"
        running = started(process.pid)
    finally:
        process.kill()
        process.communicate(timeout=100)
    _, alive = psutil.wait_procs(running, 100)
    assert not alive


def started(process: int) -> list[psutil.Process]:
    """The processes that ``process`` has started, once the emulator's is among them."""
    name = emulator_binary().name
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        found = psutil.Process(process).children(recursive=True)
        with suppress(psutil.NoSuchProcess):
            if any(child.name() == name for child in found):
                return found
        time.sleep(0.02)
    raise AssertionError("no kernel runs")


def test_what_a_compiler_lacks_is_not_held_against_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", compiler(tmp_path, FULL_DISK)["PATH"])
    with Emulator() as emulator:
        result = emulator.run(of_body(""), {"A": INPUT})
    assert result.error_kind is ErrorKind.COMPILER_LOST
    assert result.error_text == "No space left on device"
