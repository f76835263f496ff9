"""The children of the GPU's runner: what they cost when they hang or die, and whom they go with."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress

import psutil
import pytest

from tests.measure.cuda import emulated_device
from tests.measure.cuda.emulated_device import PackingBuilder
from tests.measure.cuda.runs.small_runs import BODY, JOB, OPENER, QUICK, TARGET, candidate, measure
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.records.measurement import ErrorKind, Status
from tilewright.spaces.errors import InputError

pytestmark = pytest.mark.usefixtures("libraries")


def test_hangs_and_deaths_cost_one_turn_each_and_leave_no_process():
    before = _servers()
    hangs, kills = (candidate(n, BODY + f"// {n}\n") for n in ("hangs", "kills"))
    a, b, c = map(candidate, "abc")
    measure([a, b, c, kills])  # compiles them for the emulator, which may take more than 6 s
    runner = CudaRunner(TARGET, OPENER, QUICK, least_seconds=6)
    found = measure([a, hangs, b, kills, c], runner)
    kinds = [m.error_kind for m in found]
    assert kinds == [None, ErrorKind.TIMEOUT, None, ErrorKind.WORKER_LOST, None]
    assert [m.status for m in found[1::2]] == [Status.LOST, Status.LOST]
    assert "within 6 s" in found[1].error_text
    assert "SIGSEGV" in found[3].error_text
    assert _servers() <= before


def _servers() -> set[psutil.Process]:
    """The children of this process, some of which other tests may have left."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "tilewright.measure.cuda.server" in child.cmdline():
                found.add(child)
    return found


def test_a_binary_that_is_gone_is_a_failure_of_the_machine_and_prints_nothing(capfd):
    runner = CudaRunner(TARGET, OPENER, QUICK, least_seconds=200)
    with closing(runner), closing(PackingBuilder(NvrtcBuilder(TARGET))) as builder:
        built = builder.build([candidate(name) for name in ("first", "gone", "last")])
        built[1].binary.unlink()
        found = runner.run(JOB, built)
    assert [m.status for m in found] == [Status.OK, Status.LOST, Status.OK]
    assert found[1].error_kind is ErrorKind.DEVICE
    assert found[1].error_text == "cannot read the binary: No such file or directory"
    assert "Traceback" not in capfd.readouterr().err


def test_closing_from_another_thread_ends_a_run(monkeypatch, tmp_path):
    before, sign = _servers(), tmp_path / "hangs"
    monkeypatch.setenv(emulated_device.HANGING, str(sign))
    runner = CudaRunner(TARGET, OPENER, least_seconds=200)

    def close():
        while not sign.exists():
            time.sleep(0.01)
        runner.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(RuntimeError, match="closed"):
        measure([candidate("hangs", BODY + "// hangs\n")], runner)
    thread.join()
    assert _servers() <= before


PARENT = f"""
import os, signal
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.spaces.target import detect_target
runner = CudaRunner(detect_target("cuda:sm_90a"), {OPENER!r})
print(runner._child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_child_goes_with_its_parent():
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    child = int(done.stdout)
    deadline = time.monotonic() + 100
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_child_that_does_not_start_is_no_gpu():
    with pytest.raises(InputError, match="no GPU to run on"):
        CudaRunner(TARGET, "tests.measure.cuda.emulated_device:nothing_of_this_name")
