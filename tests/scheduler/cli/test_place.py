"""``tilewright tune`` on clusters, and ``status``: who measures, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scheduler.cli.app import run
from scheduler.cli.place import chosen
from scheduler.cli.several import on_each
from spaces.errors import InputError
from spaces.target import detect_target
from tests.measure.cluster.simulated import TARGET
from tests.scheduler.cli.command import SMALL

AMPERE, HOPPER = detect_target("cuda:sm_80"), detect_target("cuda:sm_90a")


def test_names_choose_among_what_the_workers_have():
    offered = [TARGET, AMPERE, HOPPER]
    assert chosen(["cpu"], offered) == (TARGET,)
    assert chosen(["cuda"], offered) == (AMPERE, HOPPER)
    assert chosen(["cpu", "cuda:sm_90a", "cpu"], offered) == (TARGET, HOPPER)


@pytest.mark.parametrize("name", ["cuda", "cuda:sm_90a"])
def test_a_name_that_no_worker_goes_by_is_refused_with_what_there_is(name):
    with pytest.raises(InputError, match=rf"no worker has the target {name}; they have: cpu made"):
        chosen([name], [TARGET])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address", "10.0.0.1:6379"], "--address is for a cluster; allowed with: --executor"),
        (["--insecure-cluster"], "--insecure-cluster is for a cluster"),
        (["--target", "cpu", "--target", "cuda"], "2 targets (cpu, cuda), but this machine"),
        (["--executor", "slurm"], "'slurm'"),
        (["--executor", "ray", "--target", "tpu"], "unknown target 'tpu'"),
        (["--executor", "ray", "--target", "cuda", "--threads", "2"], "threads=2 is for the"),
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


def test_targets_are_tuned_side_by_side_and_the_worst_code_counts():
    targets = [replace(TARGET, model=str(i)) for i in range(3)]
    assert on_each(targets, lambda target: int(target.model)) == 2


def test_a_failure_of_one_target_ends_the_wait_for_the_others():
    def tune(target):
        raise InputError(target.model)

    with pytest.raises(InputError, match="made up"):
        on_each([TARGET, TARGET], tune)


def test_a_cluster_of_this_machine_tunes_and_ends(capsys, tmp_path):
    pytest.importorskip("ray", reason="needs the extra ray")
    options = ["--trials", "2", "--executor", "ray", "--format", "json"]
    assert run(["tune", *SMALL, "--db", str(tmp_path / "t.db"), *options]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events[-1]["event"] == "result"
    assert events[-1]["trials"] == 2
    assert run(["status"]) == 2
