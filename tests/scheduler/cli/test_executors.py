"""``tilewright tune`` on clusters, and ``status``: who measures, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_address

import psutil
import pytest

from tests.measure.cluster.simulated import TARGET
from tests.scheduler.cli.command import SMALL
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.cli.executors import short_names, targets_named
from tilewright.scheduler.cli.parallel_jobs import run_in_parallel, run_in_sequence
from tilewright.scheduler.tuning.interrupt import Interrupt
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import detect_target

AMPERE, HOPPER = detect_target("cuda:sm_80"), detect_target("cuda:sm_90a")


def test_names_choose_among_what_the_workers_have():
    offered = [TARGET, AMPERE, HOPPER]
    assert targets_named(["cpu"], offered) == (TARGET,)
    assert targets_named(["cuda"], offered) == (AMPERE, HOPPER)
    assert targets_named(["cpu", "cuda:sm_90a", "cpu"], offered) == (TARGET, HOPPER)


def test_threads_of_names_and_of_the_option_are_one_number():
    two = replace(TARGET, threads=2)
    assert targets_named(["cpu:threads=2"], [two, HOPPER]) == (two,)
    assert targets_named(["cpu:threads=1"], [TARGET]) == (TARGET,)
    with pytest.raises(InputError, match="no worker has the target cpu:threads=3"):
        targets_named(["cpu:threads=3"], [two])


@pytest.mark.parametrize("name", ["cuda", "cuda:sm_90a"])
def test_a_name_that_no_worker_goes_by_is_refused_with_what_there_is(name):
    with pytest.raises(InputError, match=rf"no worker has the target {name}; they have: cpu made"):
        targets_named([name], [TARGET])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address", "10.0.0.1:6379"], "--address is for a cluster; allowed with: --executor"),
        (["--insecure-cluster"], "--insecure-cluster is for a cluster"),
        (["--target", "cpu", "--target", "cuda"], "2 targets (cpu, cuda), but this machine"),
        (["--executor", "slurm"], "'slurm'"),
        (["--executor", "ray", "--target", "tpu"], "unknown target 'tpu'"),
        (["--executor", "ray", "--target", "cuda", "--threads", "2"], "threads=2 is for the"),
        (["--executor", "ray", "--target", "cpu:2"], "unknown target 'cpu:2'; allowed: cpu, cuda,"),
        (
            ["--executor", "ray", "--target", "cpu:threads=2", "--threads", "3"],
            "kernels of 2, 3 threads; allowed: one number",
        ),
        (
            ["--target", "cpu:threads=2", "--threads", "1"],
            "the target cpu:threads=2, but threads=1",
        ),
        (["--executor", "ray", "--address", "127.0.0.1:1"], "no Ray cluster answers at 127.0.0.1"),
        (["--executor", "ray", "--address", "head"], "address='head' is none; allowed: auto"),
    ],
)
def test_bad_input_is_one_line(options, words, capsys, tmp_path):
    pytest.importorskip("ray", reason="needs the extra ray")
    code = run(["tune", *SMALL, "--db", str(tmp_path / "t.db"), *options])
    said = capsys.readouterr().err
    assert code == 2
    assert words in said
    assert said.count("\n") == 1
    assert not (tmp_path / "t.db").exists()


def test_jobs_run_side_by_side_and_the_worst_code_counts():
    together = threading.Barrier(3)

    def job(code):
        together.wait(250)
        return code

    assert run_in_parallel([(str(code), partial(job, code)) for code in (0, 2, 1)]) == 2


def failing(error):
    raise error


def test_what_is_wrong_with_one_job_is_said_when_the_others_have_ended(capsys):
    ended = []
    jobs = [
        ("a", lambda: failing(InputError("no worker has it"))),
        ("b", lambda: ended.append("b") or 0),
    ]
    assert run_in_parallel(jobs) == 2
    assert ended == ["b"]
    assert capsys.readouterr().err == "tilewright: a: no worker has it\n"


def test_what_is_wrong_with_all_jobs_is_said_once():
    jobs = [(name, lambda: failing(InputError("the cluster is lost"))) for name in "ab"]
    with pytest.raises(InputError, match="the cluster is lost"):
        run_in_parallel(jobs)
    with pytest.raises(RuntimeError, match="a fault"):
        run_in_parallel([("a", lambda: failing(RuntimeError("a fault"))), ("b", lambda: 0)])


def test_a_signal_is_told_to_all_jobs_and_those_after_it_do_not_begin():
    heard = threading.Barrier(3)

    def job():
        with Interrupt() as interrupt:
            heard.wait(250)
            while True:
                try:
                    interrupt.check()
                except KeyboardInterrupt:
                    return 130
                time.sleep(0.01)

    def press():
        heard.wait(250)
        os.kill(os.getpid(), signal.SIGINT)
        return 0

    assert run_in_parallel([("a", job), ("b", job), ("c", press)]) == 130
    assert run_in_sequence([("a", lambda: 130), ("b", lambda: failing(AssertionError()))]) == 130


def test_targets_have_short_names_that_tell_them_apart():
    assert short_names([TARGET]) == [""]
    assert short_names([TARGET, HOPPER]) == ["cpu made up", HOPPER.summary.split(",")[0]]
    other = replace(TARGET, threads=2)
    assert short_names([TARGET, other]) == [TARGET.summary, other.summary]


class Listeners(threading.Thread):
    """Looks on which addresses processes below this one wait for others to connect, and how nice
    they are."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.found: dict[int, str] = {}
        self.niceness: set[int] = set()
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(1.0):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    self._look(process)

    def _look(self, process: psutil.Process) -> None:
        self.niceness.add(process.nice())
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                self.found[connection.laddr.port] = connection.laddr.ip


def test_a_cluster_of_this_machine_tunes_on_loopback_alone_and_ends(capsys, tmp_path):
    pytest.importorskip("ray", reason="needs the extra ray")
    options = ["--trials", "2", "--executor", "ray", "--format", "json"]
    listeners = Listeners()
    listeners.start()
    assert run(["tune", *SMALL, "--db", str(tmp_path / "t.db"), *options]) == 0
    listeners.done.set()
    listeners.join()
    addresses = [ip_address(found.removeprefix("::ffff:")) for found in listeners.found.values()]
    assert addresses
    assert all(address.is_loopback for address in addresses)
    assert listeners.niceness == {os.nice(0)}
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events[-1]["event"] == "result"
    assert events[-1]["trials"] == 2
    assert run(["status"]) == 2
