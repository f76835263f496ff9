"""However a command is asked to end, it says so, ends as asked, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.caches import warm_cache
from tilewright.measure.database import Database
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

COMMAND = "from tilewright.scheduler.cli import main; main()"
SHAPE = ("m=64", "n=64", "k=64")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SLOW_SIGNALS = [pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGINT, signal.SIGHUP)]


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache in which a test leaves no run folder."""
    folder = warm_cache(tmp_path_factory.mktemp("cache"))
    yield folder
    assert not list((folder / "tilewright" / "runs").glob("run-*"))


def start(cache: Path, *words: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        start_new_session=True,
        **options,
    )


def tune(cache: Path, database: Path, **options) -> subprocess.Popen[str]:
    words = ("tune", "matmul", *SHAPE, "--trials", "10000", "--seconds", "600")
    return start(cache, *words, "--format", "json", "--db", str(database), **options)


def descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def all_gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=100)
    return not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGTERM, *SLOW_SIGNALS])
def test_a_signal_ends_a_run_with_the_best_so_far_and_nothing_left(tmp_path, cache, number):
    path = tmp_path / "tuning.db"
    process = tune(cache, path)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    below = descendants(process)
    process.send_signal(number)
    rest, said = process.communicate(timeout=250)
    assert process.returncode == 128 + number
    assert said.startswith("tilewright: interrupted; this is the best so far; to go on: ")
    assert said.count("\n") == 1
    result = json.loads((*lines, *rest.splitlines())[-1])
    assert result["stopped"] == "interrupted"
    assert result["best"] is not None
    assert all_gone(below)
    with Database(path) as database:
        known = list(database.records(workload("matmul", m=64, n=64, k=64), detect_target("cpu")))
    assert len(known) == result["trials"] > 0


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2, 3))])
def test_a_signal_at_start_up_is_answered(tmp_path, cache, number, seed):
    """At a moment before, while or after the machine's own speed is measured."""
    words = ("tune", "matmul", *SHAPE, "--trials", "10000", "--db", str(tmp_path / "tuning.db"))
    process = start(cache, *words)
    while not listens(process):
        time.sleep(0.01)
    time.sleep(random.Random(f"{number} {seed}").uniform(0, 2))
    process.send_signal(number)
    _, said = process.communicate(timeout=250)
    assert process.returncode == 128 + number, said
    assert said.count("\n") == 1, said
    assert said.startswith("tilewright: interrupted")


def listens(process: subprocess.Popen[str]) -> bool:
    """Whether the process has a handler for SIGTERM, as it has soon after it is started."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def test_a_hangup_that_is_ignored_stays_so(tmp_path, cache):
    """As under nohup."""

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = tune(cache, tmp_path / "tuning.db", preexec_fn=ignore)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    assert process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=250)
    assert process.returncode == 128 + signal.SIGTERM, "which came second"


LIBRARY = """
    import sys
    from tilewright.scheduler.tuning.tuner import tune

    def say(progress):
        if progress.trials == 1:
            print("running", flush=True)

    try:
        tune("matmul m=64 n=64 k=64", "cpu", sys.argv[1], 10000, 600, on_progress=say)
    finally:
        print("closed", flush=True)
    print("not reached", flush=True)
"""


def test_a_program_that_tunes_is_ended_by_sigterm_with_all_that_is_open_closed(tmp_path, cache):
    path = tmp_path / "tuning.db"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LIBRARY), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
    )
    assert process.stdout is not None
    while process.stdout.readline() != "running\n":
        assert process.poll() is None
    below = descendants(process)
    process.terminate()
    said, _ = process.communicate(timeout=250)
    assert process.returncode == 128 + signal.SIGTERM
    assert said.endswith("closed\n")
    assert all_gone(below)
    with Database(path) as database:
        assert [run.reason for run in database.runs()] == ["interrupted"]
