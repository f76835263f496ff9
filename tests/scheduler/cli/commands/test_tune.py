"""``tilewright tune``: what it shows on a terminal, in a pipe and to programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.caches import warm_cache
from tests.scheduler.cli.command import (
    FUSED,
    PATHS,
    SMALL,
    TRIALS,
    ask,
    finished,
    on_terminal,
    one_line,
    start,
    written_to_terminal,
)
from tests.scheduler.screen import left_on_screen
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.cli.display import lines as cli_lines
from tilewright.scheduler.cli.display.choice import course_of
from tilewright.scheduler.cli.display.plain_lines import PlainLines
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.suite import Member
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.events import Progress, Started
from tilewright.scheduler.tuning.interrupt import Interrupt
from tilewright.scheduler.tuning.states import TaskState
from tilewright.spaces.operators import workload, workload_from_json
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target, target_from_json


def test_tune_reports_every_trial_and_the_outcome(tuned):
    for events in tuned[1]:
        assert events[0]["event"] == "start"
        assert events[0]["workload"] == events[-1]["workload"]
        trials = [event for event in events if event["event"] == "trial"]
        assert [event["trials"] for event in trials] == list(range(1, TRIALS + 1))
        result = events[-1]
        assert (result["event"], result["stopped"]) == ("result", "trials")
        assert result["trials"] == TRIALS
        best = result["best"]
        assert best["latency_s"] > 0
        assert best["gflops"] > 0
        assert best["of_peak"] > 0
        assert best["over_numpy"] > 0
        low, high = best["latency_interval_s"]
        assert 0 < low <= best["latency_s"] <= high
        low, high = best["over_numpy_interval"]
        assert 0 < low <= best["over_numpy"] <= high
        ratio = best["numpy_in_turns_s"] / best["latency_s"]
        assert best["over_numpy"] == pytest.approx(ratio, rel=1e-6)
        assert best["busy"] is None or isinstance(best["busy"], str)
        assert result["failures"] == trials[-1]["failures"]


def test_the_result_lists_the_best_few_with_their_share(tuned):
    for events in tuned[1]:
        result = events[-1]
        first, *others = result["leaders"]
        assert first == {
            "schedule": result["schedule"],
            "latency_s": result["best"]["latency_s"],
            "of_best": 1.0,
        }
        assert len(others) == 4
        shares = [leader["of_best"] for leader in result["leaders"]]
        assert shares == sorted(shares, reverse=True)
        for leader in others:
            assert leader["latency_s"] == pytest.approx(first["latency_s"] / leader["of_best"])
        rounds = ("preliminary", "final")
        compared = [event["schedule"] for event in events if event["event"] in rounds]
        assert all(leader["schedule"] in compared for leader in result["leaders"])


def test_tune_keeps_what_it_reports(tuned):
    path, (events, _) = tuned
    with Database(path, create=False) as database:
        target = target_from_json(events[-1]["target"])
        work = workload("matmul", m=64, n=64, k=64)
        assert database.trials(work, target) == TRIALS
        known = {record.schedule for record in database.best_few(work, target, TRIALS)}
    assert Schedule.from_json(events[-1]["schedule"]) in known


def test_each_trial_names_its_schedule_and_the_target_is_described_once(tuned):
    path, both = tuned
    for events in both:
        target = target_from_json(events[0]["target"])
        assert {event["target_key"] for event in events} == {target.fingerprint}
        tried = [event for event in events if event["event"] not in ("start", "result")]
        assert not any("target" in event for event in tried)
        searched = {
            Schedule.from_json(event["schedule"]) for event in tried if event["event"] == "trial"
        }
        with Database(path, create=False) as database:
            work = workload_from_json(events[0]["workload"])
            kept = {record.schedule for record in database.records(work, target)}
        assert searched == kept
        finals = [event["schedule"] for event in tried if event["event"] == "final"]
        assert events[-1]["schedule"] in finals


def test_what_tune_ends_with_is_what_query_says(tuned, capsys):
    path, both = tuned
    for words, events in zip((SMALL, FUSED), both, strict=True):
        answer = json.loads(ask(capsys, "query", *words, "--db", str(path), "--format", "json"))
        found = events[-1]
        assert answer["schedule"] == found["schedule"]
        assert answer["latency_s"] == found["best"]["latency_s"]
        assert answer["latency_interval_s"] == found["best"]["latency_interval_s"]


def test_a_terminal_shows_a_table_that_lives_while_a_slow_compiler_builds(tmp_path, monkeypatch):
    """A clock that stands still looks like a program that hangs."""
    compiler = tmp_path / "slowcc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *unit*) sleep 3;; esac\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    budget = ("--trials", "2", "--seconds", "100", "--db", "tuning.db")
    code, shown = on_terminal("tune", *SMALL, *budget, cwd=tmp_path)
    assert code == 0
    clocks = re.findall(r"building the first \d c[^:]*?\btime +(\d+:\d\d)", shown)
    assert len(set(clocks)) >= 3, shown
    for words in ("2 of 2", "failures", "GFLOP/s", "of measured peak", "over NumPy's BLAS", "left"):
        assert words in shown


def test_a_terminal_keeps_the_course_of_a_run_and_its_end(tmp_path):
    budget = ("--trials", "4", "--seconds", "100", "--db", "tuning.db")
    code, written = written_to_terminal("tune", *SMALL, *budget, cwd=tmp_path, columns=80)
    assert code == 0
    kept = left_on_screen(written)
    text = "\n".join(kept)
    assert re.match(r"0:\d\d  tuning matmul m=64 n=64 k=64", kept[0]), text
    assert re.search(r"^\d+:\d\d  trial \d+: ", text, re.MULTILINE), text
    assert re.search(r"^\d+:\d\d  comparing the best again, ", text, re.MULTILINE), text
    assert "phase" not in text
    assert "4, failures: " in text
    assert max(map(len, kept)) <= 80


def test_a_terminal_that_only_prints_gets_lines_while_the_run_goes_on(tmp_path):
    budget = ("--trials", "2", "--seconds", "100", "--db", "tuning.db")
    code, shown = on_terminal("tune", *SMALL, *budget, cwd=tmp_path, term="dumb")
    assert code == 0
    lines = shown.splitlines()
    assert re.match(r"0:\d\d  tuning matmul m=64 n=64 k=64", lines[0])
    assert any(re.match(r"\d+:\d\d  trial \d+: ", line) for line in lines)


def test_a_pipe_gets_few_lines(tmp_path):
    budget = ("--trials", "2", "--seconds", "100", "--db", "tuning.db")
    code, out, err = finished("tune", *SMALL, *budget, cwd=tmp_path)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert re.match(r"\d:\d\d  tuning matmul m=64 n=64 k=64", lines[0])
    assert len(lines) <= 40
    gains = [line for line in lines if re.match(r"\d+:\d\d  trial \d+: [\d.]+ .?s, ", line)]
    assert gains
    assert any("comparing the best again" in line for line in lines)
    kept = lines.index("kept in tuning.db, for tilewright query and best() in Python")
    assert lines[kept + 1 :] == [
        "to call it in Python:",
        '  best("matmul m=64 n=64 k=64", "cpu", "tuning.db")',
        "to repeat the run:",
        "  tilewright tune matmul m=64 n=64 k=64 --trials 2 --seconds 100 --db tuning.db",
    ]
    assert re.search(r"^over the first kernel +[\d.]+ x, found at trial [12]$", out, re.MULTILINE)
    end = lines[lines.index("") + 1 : kept]
    assert end[0].split() == ["latency", "of", "best", "schedule"]
    assert len(end) == 3
    assert " 100.0 %  contraction: " in end[1]
    assert all(re.search(r"[\d.]+ %  contraction: .*tile_rows=", line) for line in end[1:])
    assert "\x1b" not in out
    code, out, err = finished("tune", *SMALL, *budget, "-v", "--seed", "1", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "known from earlier runs: 2 schedules" in out
    assert re.search(r"  best of earlier runs: [\d.]+ .?s, ", out)
    assert re.findall(r"  trial (\d+): (?:ok|slow|error) .*\w+: \w+=\w+ ", out) == ["1", "2"]
    assert re.search(r"  final, 0 to go: ok [\d.]+ .?s  \w+: \w+=\w+ ", out)
    assert re.search(r"\nbest +[\d.]+ .?s \([\d.]+ .?s to [\d.]+ .?s\), ", out)


def test_a_run_that_is_too_short_for_a_kernel_blames_none(tmp_path, capsys, monkeypatch):
    compiler = tmp_path / "slowcc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *unit*) sleep 100;; esac\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert run(("tune", *SMALL, "--seconds", "1", "--db", str(tmp_path / "tuning.db"))) == 1
    said = one_line(capsys.readouterr().err)
    assert re.fullmatch(r".*: no kernel was measured in 0:\d\d; allow more --seconds\n", said)


@pytest.mark.slow
def test_what_is_built_once_to_measure_kernels_is_no_part_of_the_time(tmp_path, monkeypatch):
    compiler = tmp_path / "slowcc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *server.c*) sleep 2;; esac\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    cold = warm_cache(tmp_path / "cold", ["peaks"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(cold))
    command = ("tune", *SMALL, "--trials", "2", "--seconds", "100", "--db", "tuning.db")
    began = time.monotonic()
    code, out, err = finished(*command, "--format", "json", cwd=tmp_path)
    took = time.monotonic() - began
    assert (code, err) == (0, "")
    result = json.loads(out.splitlines()[-1])
    assert result["seconds"] < took - 2, "as long as the compiler slept"
    shutil.rmtree(cold / "tilewright/binaries")
    code, out, err = finished(*command, cwd=tmp_path)
    assert (code, err) == (0, "")
    first, second, *_ = out.splitlines()
    assert re.fullmatch(
        r"built what measures kernels here, once, in 0:\d\d; no --seconds .*", first
    )
    assert re.match(r"0:\d\d  tuning matmul", second)


def test_what_python_takes_to_load_is_part_of_the_time(tmp_path):
    program = "import tilewright.scheduler.cli as cli; cli.BEGAN -= 90; cli.main()"
    options = ("--seconds", "60", "--db", str(tmp_path / "tuning.db"))
    done = subprocess.run(
        [sys.executable, "-c", program, "tune", *SMALL, *options],
        env=os.environ | {"PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert re.search(r"no kernel was measured in 1:[34]\d; allow more --seconds\n", done.stderr)


def test_a_quiet_run_prints_its_result_alone(tmp_path, capsys):
    budget = ("--trials", "2", "--seconds", "100", "--db", str(tmp_path / "tuning.db"))
    assert ask(capsys, "tune", *SMALL, *budget, "--quiet").startswith("workload ")


def test_silence_is_broken(monkeypatch, capsys):
    monkeypatch.setattr(cli_lines, "SILENCE_SECONDS", 0.05)
    work = workload("matmul", m=64, n=64, k=64)
    target = detect_target("cpu")
    with PlainLines(course_of) as lines:
        lines.tell(Started.of(work, target, "5f2c91ab"))
        while "measuring the peak of this machine" not in (said := capsys.readouterr().out):
            time.sleep(0.01)
        schedule = Schedule("contraction", ())
        best = Measurement(schedule, Status.OK, 1e-3, started_at=0.0)
        failures = {"timeout": 1}
        task = TaskState(Member(work), Baseline(work), 7, 0, 2, 3, failures, best, 1e-3, None)
        states = ("", Objective.LATENCY, (task,))
        lines.tell(Progress(*states, target, "search", 0, None, 9, 1.0, 60.0))
        while "building and measuring 2 candidates" not in (said := capsys.readouterr().out):
            time.sleep(0.01)
    assert "trials: 7 of 9, failures: 1 timeout, 3 lost to the machine; best: 1 ms" in said


def test_interrupted_tuning_ends_with_the_best_so_far(tmp_path):
    budget = ("--trials", "100000", "--seconds", "100", "--db", "tuning.db", "--format", "json")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("tune", *SMALL, *budget, cwd=tmp_path, **pipes) as process:
        process.stdout.readline()
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=250)
    assert process.returncode == 130, err
    words = "tilewright: interrupted; this is the best so far; to go on: tilewright resume"
    assert re.fullmatch(rf"{words} [0-9a-f]{{8}}\n", err)
    result = json.loads(out.splitlines()[-1])
    assert (result["event"], result["stopped"]) == ("result", "interrupted")
    assert result["best"]["latency_s"] <= first["latency_s"]
    with Database(tmp_path / "tuning.db", create=False) as database:
        assert len(list(database.records())) >= result["trials"]


def test_tuning_for_a_gpu_that_is_not_here_makes_no_database(tmp_path, capsys):
    path = tmp_path / "tuning.db"
    assert run(["tune", *SMALL, "--target", "cuda:sm_80", "--db", str(path)]) == 2
    assert "GPU" in capsys.readouterr().err
    assert not path.exists()


def test_the_first_interrupt_is_noted_and_the_second_raises():
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        interrupt.check()
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
