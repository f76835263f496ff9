"""``tilewright tune`` for two targets at once, on a cluster of two made-up kinds of devices."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing

import psutil
import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from tests.measure.cluster.nodes import cluster
from tests.measure.cluster.simulated import TARGET, gpu
from tests.scheduler.cli.command import PATHS, ask
from tests.scheduler.cli.commands.test_sessions import age, line_of
from tilewright.measure.database import Database
from tilewright.spaces.target import target_from_json

GPU = gpu("a GPU")
NAMES = {"cpu made up": TARGET, GPU.summary.split(",")[0]: GPU}
KEYS = [json.dumps({"target_key": target.fingerprint})[1:-1] for target in (TARGET, GPU)]
WORK = ("matmul", "m=512", "n=512", "k=512")
JSON = ("--format", "json")
ENDLESS = ("--trials", "1000000", "--seconds", "3000")
SUITE = """
[[workloads]]
name = "often"
operator = "matmul"
parameters = { m = 512, n = 512, k = 512 }
weight = 10

[[workloads]]
name = "seldom"
operator = "matmul"
parameters = { m = 512, n = 256, k = 512 }
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster(cpus=4, num_gpus=1) as made:
        yield made.address


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.scheduler.cli.simulated_cluster", *words]
    environment = os.environ | {"PYTHONPATH": PATHS}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def tune(address: str, *words: str) -> subprocess.Popen[str]:
    where = ("--executor", "ray", "--address", address, "--target", "cpu", "--target", "cuda")
    return start("tune", *words, *where)


def read_until_all_are_measured(
    process: subprocess.Popen[str], sign: str, names: Iterable[str] = NAMES
) -> list[str]:
    """The lines of output up to one with that ``sign`` of each target, by its name in lines."""
    lines: list[str] = []
    missing = set(names)
    while missing:
        lines.append(process.stdout.readline())
        assert lines[-1], process.stderr.read()
        missing -= {name for name in missing if sign in lines[-1] and name in lines[-1]}
    return lines


def check_kept(told, target, reason) -> None:
    """That the database has what was told of one target, under that target."""
    device = target.model if target is GPU else "made up cpu"
    assert (told[0]["event"], told[-1]["event"]) == ("start", "result")
    trials = sum(event["event"] == "trial" for event in told)
    with Database("tuning.db", create=False) as database:
        kept = [r for r in database.records() if r.target == target]
        best = database.best(kept[0].workload, target)
        assert [run.reason for run in database.runs() if run.target == target] == [reason]
    assert sum(r.measurement.round == "search" for r in kept) == trials == told[-1]["trials"] >= 2
    assert all(record.measurement.place.device.startswith(device) for record in kept)
    assert best.measurement.score == told[-1]["best"]["latency_s"]


def told_of(lines: list[str], target) -> list[dict]:
    """The events of one target."""
    events = map(json.loads, lines)
    return [event for event in events if event["target_key"] == target.fingerprint]


def check_status(address: str, capsys) -> None:
    """That others see a driver, its two jobs, and its workers."""
    patience = time.monotonic() + 60.0  # what drivers say of themselves is a little old
    jobs: list[dict] = []
    while {job["target"] for job in jobs} != {TARGET.summary, GPU.summary}:
        assert time.monotonic() < patience, jobs
        drivers = json.loads(ask(capsys, "status", "--address", address, *JSON))
        jobs = [job for driver in drivers for job in driver["jobs"]]
    assert len(drivers) == 1
    shown = ask(capsys, "status", "--address", address)
    assert "running, " in shown
    assert "candidates/s" in shown
    for words in (*(job["id"] for job in jobs), "matmul m=512", "build", GPU.model):
        assert words in shown


@pytest.mark.slow
def test_a_signal_ends_all_targets_and_each_result_is_told_and_kept_under_its_own(
    address, here, capsys
):
    with tune(address, *WORK, *ENDLESS, *JSON) as process:
        lines = read_until_all_are_measured(process, '"trials": 2,', KEYS)
        check_status(address, capsys)
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        lines += process.stdout.read().splitlines()
        err = process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM, err
    assert len(err.splitlines()) == 2
    for name in NAMES:
        assert f"tilewright: {name}: interrupted; this is the best so far; to go on: " in err
    assert not psutil.wait_procs(below, timeout=60)[1]
    for target in (TARGET, GPU):
        check_kept(told_of(lines, target), target, "interrupted")


@pytest.mark.slow
def test_each_target_has_its_trials(address, here):
    with tune(address, *WORK, "--trials", "8", "--format", "json") as process:
        out, err = process.communicate(timeout=500)
    assert (process.returncode, err) == (0, "")
    for target in (TARGET, GPU):
        told = told_of(out.splitlines(), target)
        assert told[-1]["trials"] == 8
        check_kept(told, target, "trials")


@pytest.mark.slow
def test_each_line_for_people_names_its_target(address, here):
    with tune(address, *WORK, *ENDLESS, "-v") as process:
        lines = read_until_all_are_measured(process, "search 2")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=500)
    assert process.returncode == 128 + signal.SIGINT, err
    for target in NAMES.values():
        assert re.search(rf"^target +{re.escape(target.summary)}$", out, re.MULTILINE)
    clocked = [line for line in [*lines, *out.splitlines()] if line[:1].isdigit()]
    assert all(any(f"  {name}: " in line for name in NAMES) for line in clocked)


@pytest.mark.slow  # as test_ray_executor.py does without a process, and test_place.py by name
def test_a_target_that_no_worker_has_is_refused_with_what_they_have(address, here):
    where = ("--executor", "ray", "--address", address, "--target", "cuda:sm_80")
    with start("tune", *WORK, *where) as process:
        out, err = process.communicate(timeout=500)
    assert (process.returncode, out) == (2, "")
    assert err == (f"tilewright: no worker has the target cuda:sm_80; they have: {GPU.summary}\n")
    assert not (here / "tuning.db").exists()


def used(runs, tried, target) -> int:
    """Trials of the suite on one target."""
    return sum(tried[run.key] for run in runs if run.target == target)


def allow(folder, trials: int) -> None:
    """As if the job had been told to make so many trials."""
    with closing(sqlite3.connect(folder / "tuning.db")) as connection:
        change = "UPDATE runs SET configuration = json_set(configuration, '$.trials', ?)"
        connection.execute(change, (trials,))
        connection.commit()


@pytest.mark.slow  # as test_sessions.py does without a cluster
def test_a_suite_whose_driver_is_killed_is_lost_and_goes_on_where_it_ran(address, here, capsys):
    (here / "two.toml").write_text(SUITE)
    with tune(address, "--suite", "two.toml", *ENDLESS, "-v") as process:
        read_until_all_are_measured(process, "search 2")
        process.kill()
    with Database("tuning.db", create=False) as database:
        before = list(database.runs())
        tried = {run.key: database.trials_of_run(run.key) for run in before}
    assert len(before) == 4
    assert len({run.session for run in before}) == 1
    for told in (run.configuration for run in before):
        assert (told["executor"], told["address"]) == ("ray", address)
    session = before[0].session
    age(here, 100)
    line = line_of(session, capsys)
    assert "lost, last heard of" in line
    assert f"ray {address}" in line
    allow(here, 24 + max(used(before, tried, target) for target in (TARGET, GPU)))
    with start("resume", session, "--format", "json") as process:
        out, err = process.communicate(timeout=500)
    assert (process.returncode, err) == (0, "")
    results = [e for e in map(json.loads, out.splitlines()) if e["event"] == "result"]
    assert {target_from_json(e["target"]) for e in results} == {TARGET, GPU}
    assert all(event["resumed"] > 0 for event in results)
    with Database("tuning.db", create=False) as database:
        after = [run.configuration for run in database.runs(session)]
    assert {(told["executor"], told["address"]) for told in after} == {("ray", address)}
    assert "ended: trials" in line_of(session, capsys)
