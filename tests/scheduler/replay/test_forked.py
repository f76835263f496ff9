"""Work shared out among processes: order, errors, deaths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.scheduler.cli.command import PATHS
from tilewright.scheduler.replay.forked import map_in_processes
from tilewright.spaces.errors import InputError


@pytest.mark.parametrize("jobs", [1, 2, 5, 50])
def test_results_come_in_order_from_other_processes(jobs):
    done = list(map_in_processes(lambda item: (item, os.getpid()), range(20), jobs))
    assert [item for item, _ in done] == list(range(20))
    assert len({process for _, process in done}) == min(jobs, 20)
    assert (os.getpid() in {process for _, process in done}) == (jobs == 1)


def test_what_work_raises_is_raised_here():
    def work(item):
        if item == 3:
            raise InputError("three is bad")
        return item

    made = map_in_processes(work, range(5), 2)
    assert [next(made) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InputError, match="three is bad"):
        next(made)


def test_a_killed_process_is_told_of():
    with pytest.raises(ChildProcessError, match="killed"):
        list(map_in_processes(lambda item: os.kill(os.getpid(), signal.SIGKILL), range(4), 2))


def test_processes_end_when_nobody_wants_more():
    made = map_in_processes(lambda item: os.getpid(), range(10**6), 2)
    processes = {next(made), next(made)}
    made.close()
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


HUNG_UP = """
import time
from tilewright.scheduler.replay.forked import map_in_processes
from tilewright.scheduler.tuning.interrupt import Ended, listen
def work(item):
    if item >= 2:
        time.sleep(3600)
    return item
listen()
try:
    made = map_in_processes(work, range(4), 2)
    print(next(made), next(made), flush=True)
    next(made)
except Ended:
    print("ended")
"""


def test_when_a_terminal_goes_the_parent_alone_answers():
    command = [sys.executable, "-c", HUNG_UP]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": PATHS}, **options) as parent:
        assert parent.stdout.readline() == "0 1\n"
        for process in psutil.Process(parent.pid).children():
            process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        parent.send_signal(signal.SIGHUP)
        assert parent.communicate(timeout=60) == ("ended\n", "")


ENDLESS = """
import os, time
from tilewright.scheduler.replay.forked import map_in_processes
def work(item):
    if item >= 2:
        time.sleep(3600)
    return os.getpid()
made = map_in_processes(work, range(4), 2)
print(next(made), next(made), flush=True)
next(made)
"""


def test_processes_end_with_a_parent_that_is_killed():
    """They hold the other end of its output, which ends when the last of them does."""
    command = [sys.executable, "-c", ENDLESS]
    environment = os.environ | {"PYTHONPATH": PATHS}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        try:
            first = parent.stdout.readline()
        finally:
            parent.kill()
        assert len(first.split()) == 2
        assert parent.stdout.read() == b""
