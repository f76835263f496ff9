"""However a run ends, nothing is left: no process, no file."""

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.caches import warm_cache
from tests.measure.cpu.c_kernels import good, hanging, target
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.host.directories import RunDirectory, cache_directory

PATIENT = replace(good("a").job, best=60.0)
"""A job whose calls may take minutes."""

TUNER = """
    import sys
    from tilewright.measure.executor import LocalExecutor
    from tests.measure.cpu.c_kernels import good, hanging, target
    from tests.measure.cpu.test_orphans import PATIENT
    executor = LocalExecutor(target())
    executor.submit(PATIENT, [good("a"), hanging("b")])
    print("up", flush=True)
    executor.results()
"""


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    """Elsewhere others make and remove run directories meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(warm_cache(tmp_path_factory.mktemp("cache"))))
        yield


def run_directories() -> set[Path]:
    return set(cache_directory("runs").glob("run-*"))


def runners(process: int) -> list[psutil.Process]:
    """The server that ``process`` has started, and the processes of its candidates."""
    found = []
    for child in psutil.Process(process).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.name().startswith("server"):
                found.append(child)
    return found


def wait_until(condition, seconds: float = 100.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    left = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
    return left


@pytest.fixture
def tuner():
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(TUNER)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "up\n"
    # Of the two candidates one waits for its rounds and one hangs.
    assert wait_until(lambda: len(runners(process.pid)) == 3)
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_die_with_their_parent(tuner, number):
    children = runners(tuner.pid)
    tuner.send_signal(number)
    tuner.wait()
    assert wait_until(lambda: not alive(children)), alive(children)


def test_candidates_die_with_their_server(tuner):
    server, *children = runners(tuner.pid)
    server.kill()
    assert wait_until(lambda: not alive(children)), alive(children)


def test_the_next_run_removes_the_files_of_a_killed_one(tuner):
    tuner.kill()
    tuner.wait()
    assert any(not _is_locked(path) for path in run_directories())
    RunDirectory().close()
    assert all(_is_locked(path) for path in run_directories())


def _is_locked(path: Path) -> bool:
    with open(path / "lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_closing_leaves_no_process_and_no_file():
    LocalExecutor(target()).close()  # what the process opens once is not a leak
    own = psutil.Process()
    before = run_directories()
    descriptors = own.num_fds()
    executor = LocalExecutor(target())
    executor.submit(PATIENT, [good("a"), hanging("b")])
    assert wait_until(lambda: len(runners(own.pid)) == 3)
    executor.close()
    assert wait_until(lambda: not runners(own.pid))
    assert not {p for p in run_directories() - before if not _is_locked(p)}
    assert own.num_fds() <= descriptors  # others may have left some, which are collected now


def test_an_interrupt_reaches_the_caller_and_closing_still_works():
    script = textwrap.dedent(
        """
        from tilewright.measure.executor import LocalExecutor
        from tests.measure.cpu.c_kernels import hanging, target
        from tests.measure.cpu.test_orphans import PATIENT
        executor = LocalExecutor(target())
        executor.submit(PATIENT, [hanging("a")])
        print("up", flush=True)
        try:
            executor.results()
        except KeyboardInterrupt:
            executor.close()
            print("closed", flush=True)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == "up\n"
    assert wait_until(lambda: len(runners(process.pid)) == 2)
    children = runners(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert output == "closed\n"
    assert process.returncode == 0
    assert wait_until(lambda: not alive(children)), alive(children)
