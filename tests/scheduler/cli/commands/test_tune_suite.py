"""``tilewright tune --suite``: two tiny products, on this CPU."""

from __future__ import annotations

import json
import re
import signal
import subprocess

import pytest

from tests.scheduler.cli.command import SMALL, ask, finished, on_terminal, one_line, start
from tests.scheduler.cli.commands.test_sessions import allow
from tilewright.measure.database import Database
from tilewright.scheduler.cli.app import run
from tilewright.spaces.operators import workload
from tilewright.spaces.target import target_from_json

SUITE = """
title = "two products"

[[workloads]]
name = "often"
operator = "matmul"
parameters = { m = 64, n = 64, k = 64 }
weight = 10

[[workloads]]
name = "fused"
operator = "matmul"
parameters = { m = 96, n = 64, k = 64, epilogue = "relu(x + bias[n])" }
"""
WORKLOADS = [
    workload("matmul m=64 n=64 k=64"),
    workload("matmul m=96 n=64 k=64 epilogue='relu(x + bias[n])'"),
]
BUDGET = ("--trials", "8", "--seconds", "100", "--db", "tuning.db")
JSON = ("--db", "tuning.db", "--format", "json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the suite is, and a database that a run of it filled."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "two.toml").write_text(SUITE)
    return folder


@pytest.fixture(scope="module")
def events(folder):
    """What a first run prints for programs."""
    code, out, err = finished("tune", "--suite", "two.toml", *BUDGET, "--format=json", cwd=folder)
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def test_programs_are_told_each_trial_and_the_outcome(events):
    begin, *trials, result = events
    assert begin["event"] == "start"
    assert [task["weight"] for task in begin["tasks"]] == [10, 1]
    searched = [event for event in trials if event["event"] == "trial"]
    assert [event["trials"] for event in searched] == list(range(1, 9))
    assert {event["task"] for event in searched} == {0, 1}
    assert (result["event"], result["stopped"], result["trials"]) == ("result", "trials", 8)
    latencies = [task["latency_s"] for task in result["tasks"]]
    assert result["value"] == pytest.approx(10 * latencies[0] + latencies[1])
    assert result["library_value"] > 0
    for place, task in enumerate(result["tasks"]):
        finals = [e["latency_s"] for e in trials if (e["event"], e["task"]) == ("final", place)]
        assert task["latency_s"] in finals


def test_what_is_told_is_kept(events, folder):
    target = target_from_json(events[0]["target"])
    with Database(folder / "tuning.db", create=False) as database:
        for work, task in zip(WORKLOADS, events[-1]["tasks"], strict=True):
            assert database.trials(work, target) == task["trials"]
            known = database.best(work, target)
            assert known.measurement.score == task["latency_s"]
        assert {run.session for run in database.runs()} != {""}


def test_a_pipe_gets_few_lines_and_a_second_run_goes_on(events, folder):
    code, out, err = finished("tune", "--suite", "two.toml", *BUDGET, cwd=folder)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert re.match(r"0:\d\d  tuning two products \(2 workloads\) on ", lines[0])
    gains = [line for line in lines if "weighted sum of latencies" in line]
    assert gains
    assert any("comparing the best again" in line for line in lines)
    heads = next(line for line in lines if line.split()[:1] == ["workload"])
    assert " ".join(heads.split()) == "workload weight trials share latency gain NumPy state"
    for name in ("often", "fused"):
        assert re.search(rf"^ *{name} .* [\d.]+ .?s .* x +trials", out, re.MULTILINE), out
    heads = [(line.split() or [""])[0] for line in lines]
    end = heads.index("objective")
    assert heads[end : end + 5] == ["objective", "trials", "session", "stopped", "kept"]
    assert len(lines) <= 40
    with Database(folder / "tuning.db", create=False) as database:
        kept = [r for r in database.records() if r.measurement.round == "search"]
        assert len({(r.workload, r.schedule) for r in kept}) == 16


def test_a_terminal_shows_a_table(folder):
    code, text = on_terminal("tune", "--suite", "two.toml", *BUDGET, "--trials", "2", cwd=folder)
    assert code == 0
    for words in ("two products", "2 of 2", "share", "often", "weighted sum", "x NumPy", "left"):
        assert words in text


def test_interrupted_it_ends_with_the_best_so_far_of_all_and_is_resumed(here, capsys):
    (here / "two.toml").write_text(SUITE)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    endless = ("--trials", "1000000", "--seconds", "3000", "--db", "tuning.db")
    command = ("tune", "--suite", "two.toml", *endless, "--format", "json")
    with start(*command, cwd=here, **pipes) as process:
        session = json.loads(process.stdout.readline())["session"]
        while not json.loads(process.stdout.readline()).get("value"):
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
    assert process.returncode == 130, err
    assert err.startswith("tilewright: interrupted; this is the best so far; to go on: tilewright ")
    result = json.loads(out.splitlines()[-1])
    assert (result["event"], result["stopped"]) == ("result", "interrupted")
    assert all(task["latency_s"] > 0 for task in result["tasks"])
    (here / "two.toml").unlink()  # what it was is in the database
    check_resumed(session, capsys)


def check_resumed(session: str, capsys) -> None:
    """That a session of the suite goes on with what is left, to its end."""
    trials = allow(session, 8)
    begin, *_, result = map(json.loads, ask(capsys, "resume", session, *JSON).splitlines())
    assert [(task["name"], task["weight"]) for task in begin["tasks"]] == [
        ("often", 10),
        ("fused", 1),
    ]
    assert result["stopped"] == "trials"
    with Database("tuning.db") as database:
        kept = list(database.runs(session))
        assert sum(database.trials_of_run(found.key) for found in kept) == trials
    assert [found.workload for found in kept] == WORKLOADS * 2
    assert run(("resume", session, "--db", "tuning.db")) == 2
    assert "has come to its end (trials)" in one_line(capsys.readouterr().err)


def test_a_shipped_suite_is_named_in_the_help(capsys):
    assert "bert-base" in " ".join(ask(capsys, "tune", "--help").split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--suite", "none.toml"), "suite 'none.toml': No such file or directory; allowed: a TOML"),
        (("--suite", "notes.txt"), "suite 'notes.txt': it is no TOML"),
        (("--suite", "negative.toml"), "workload 1: weight=-1 is out of range; allowed: finite"),
        (
            ("--suite", "unknown.toml"),
            "workload 1: unknown operator 'conv'; did you mean conv2d? known: argmax",
        ),
        (("--suite", "empty.toml"), "it has no workloads; allowed: at least one [[workloads]]"),
        (("--suite", "two.toml", *SMALL), "--suite and the operator 'matmul'; allowed: one of"),
        (("--suite", "two.toml", "--objective", "fun"), "'--objective'"),
        (("--suite", "two.toml", "--trials", "0"), "'--trials'"),
        (("--suite", "two.toml", "--seconds", "inf"), "--seconds=inf"),
        (("--suite", "two.toml", "--db", "notes.txt"), "notes.txt cannot be used"),
        (("--suite", "llama-3-8b", "--objective", "speedup"), "objective=speedup needs"),
        ((*SMALL, "--objective", "speedup"), "--objective speedup is for a suite"),
    ],
)
def test_bad_input(here, capsys, arguments, says):
    files = {"two": SUITE, "negative": SUITE.replace("= 10", "= -1"), "empty": "title = 'none'"}
    files["unknown"] = SUITE.replace('"matmul"', '"conv"')
    for name, text in files.items():
        (here / f"{name}.toml").write_text(text)
    before = sorted(here.iterdir())
    assert run(["tune", *arguments]) == 2
    said = capsys.readouterr()
    assert says in one_line(said.err)
    assert said.out == ""
    assert sorted(here.iterdir()) == before


def test_one_section_of_a_suite_is_tuned_and_all_are_told_of(here, capsys):
    text = SUITE.replace("weight = 10", "weight = { decode = 3, prefill = 7 }")
    (here / "phases.toml").write_text(text + "weight = { prefill = 1 }\n")
    budget = ("--trials", "2", "--seconds", "100", "--db", "tuning.db")
    words = ("tune", "--suite", "phases.toml", *budget)
    begin, *_, result = map(
        json.loads, ask(capsys, *words, "--section", "decode", "--format=json").splitlines()
    )
    assert [(task["name"], task["weight"]) for task in begin["tasks"]] == [("often", 3)]
    assert (begin["title"], result["sections"]) == ("two products, decode", {})
    out = ask(capsys, *words, "-q")
    assert re.search(r"^decode +weighted sum of latencies", out, re.MULTILINE)
    assert re.search(r"^prefill +weighted sum of latencies", out, re.MULTILINE)


def test_workloads_that_got_no_trial_are_not_blamed(here, capsys):
    (here / "few.toml").write_text(SUITE)
    budget = ("--trials", "1", "--seconds", "100", "--db", "few.db", "-q")
    assert run(("tune", "--suite", "few.toml", *budget)) == 1
    said = one_line(capsys.readouterr().err)
    assert re.search(r": no kernel was measured for (often|fused); allow more --trials$", said)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--suite", "two.toml", "--section", "decode"), "the suite has no section 'decode'"),
        ((*SMALL, "--section", "decode"), "--section 'decode' is one of a suite"),
    ],
)
def test_a_section_that_is_none_is_refused(words, says, here, capsys):
    (here / "two.toml").write_text(SUITE)
    assert run(("tune", *words)) == 2
    assert says in one_line(capsys.readouterr().err)
