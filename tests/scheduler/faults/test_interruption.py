"""Real tuning processes, tuned to the end, interrupted, and killed at random moments."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.measure.database import Database
from tilewright.scheduler.tuning.events import Progress
from tilewright.scheduler.tuning.states import Stop
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

WORKLOAD = workload("matmul", m=64, n=64, k=64)
TUNE = """
import sys
from tilewright.measure.database import Database
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

def say(progress):
    if progress.latest is not None and progress.phase == "search":
        print(progress.latest.schedule.key, flush=True)

with Database(sys.argv[1]) as database:
    tuner = Tuner(workload("matmul", m=64, n=64, k=64), detect_target("cpu"), database, batch=4)
    result = tuner.run(trials=int(sys.argv[2]), seconds=600, on_progress=say)
print("ended:", result.stopped, result.trials, result.resumed)
"""


def start(database: Path, trials: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", TUNE, str(database), str(trials)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def searched(path: Path) -> list[str]:
    """Keys of the schedules measured in searches, oldest first."""
    if not path.exists():
        return []
    with Database(path) as database:
        records = list(database.records(WORKLOAD, detect_target("cpu")))
    return [r.schedule.key for r in records if r.measurement.round == "search"]


def test_a_real_run_finds_a_right_kernel(tmp_path: Path) -> None:
    path = tmp_path / "tuning.db"
    result = tune(WORKLOAD, "cpu", path, trials=16, seconds=600)
    assert result.stopped is Stop.TRIALS
    assert result.trials == len(searched(path)) == 16
    assert result.best is not None
    assert result.best.round == "final"
    again = tune(WORKLOAD, "cpu", path, trials=16, seconds=600)
    assert (again.trials, again.resumed) == (16, 16)
    assert len(set(searched(path))) == 32


def kill_and_resume(path: Path, kills: int, seed: int) -> None:
    moments = random.Random(seed)
    before: list[str] = []
    for run in range(kills):
        process = start(path, trials=10_000)
        assert process.stdout is not None
        heard = [process.stdout.readline() for _ in range(moments.randrange(20))]
        time.sleep(moments.uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        said = "".join([*heard, process.stdout.read()]).splitlines()
        process.wait(timeout=100)
        after = searched(path)
        assert after[: len(before)] == before
        assert set(said) <= set(after)
        again = len(after) - len(set(after))
        assert again <= 4 * run, "a run measures the best of earlier ones once more, no others"
        before = after
    assert before
    process = start(path, trials=4)
    words, _ = process.communicate(timeout=200)
    assert words.splitlines()[-1] == f"ended: trials 4 {len(set(before))}"
    assert searched(path)[: len(before)] == before
    assert len(set(searched(path))) == len(set(before)) + 4


def test_killed_at_two_random_moments_nothing_is_lost_or_repeated(tmp_path: Path) -> None:
    kill_and_resume(tmp_path / "tuning.db", kills=2, seed=4)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_twenty_random_moments_nothing_is_lost_or_repeated(tmp_path: Path) -> None:
    kill_and_resume(tmp_path / "tuning.db", kills=20, seed=20)


def test_ctrl_c_ends_a_run_cleanly_with_the_best_so_far(tmp_path: Path) -> None:
    path = tmp_path / "tuning.db"
    process = start(path, trials=10_000)
    assert process.stdout is not None
    first = process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole process group
    *said, last = [first, *process.stdout.read().splitlines(keepends=True)]
    assert process.wait(timeout=100) == 0
    assert last == f"ended: interrupted {len(said)} 0\n"
    assert {line.strip() for line in said} == set(searched(path))


def test_ctrl_c_is_heard_between_two_results_only(tmp_path: Path) -> None:
    """It may come while a library calls back into Python, which would drop the exception."""

    def press(progress: Progress) -> None:
        if progress.trials == 1 and progress.phase == "search":
            ctypes.PYFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()

    path = tmp_path / "tuning.db"
    result = tune(WORKLOAD, "cpu", path, trials=64, seconds=600, on_progress=press)
    assert result.stopped is Stop.INTERRUPTED
    assert 0 < result.trials < 64
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


LOSING = """
import ctypes, signal, sys, time
from tilewright.scheduler.tuning.interrupt import Ended, exit_code, listen

listen()
try:
    ctypes.PYFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))()
    time.sleep(250)
except Ended:
    sys.exit(exit_code())
"""


def test_a_signal_whose_exception_is_lost_in_a_callback_is_not_forgotten() -> None:
    done = subprocess.run([sys.executable, "-c", LOSING], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr == ""
