"""Drawing, shortening and judging schedules, and the command that does it."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.measure.cuda.emulator import Interleaving
from tilewright.measure.host.directories import RunDirectory
from tilewright.measure.records.measurement import ErrorKind
from tilewright.scheduler import verification
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.cli.display import lines
from tilewright.scheduler.verification import draw, emulable, emulate, measure
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

WORK = workload("matmul", m=33, n=18, k=20, epilogue="relu(x + bias[n])", c="col")


@pytest.fixture(scope="module")
def space():
    return space_for(WORK, detect_target("cuda:sm_90a"))


@pytest.fixture
def broken(monkeypatch):
    """Lets every kernel compute half of what it should."""
    lower = Space.lower

    def wrong(self, schedule):
        parameters = dict(self.workload.parameters)
        parameters["epilogue"] = f"({parameters['epilogue']}) * 0.5"
        return lower(space_for(workload("matmul", **parameters), self.target), schedule)

    def break_them():
        monkeypatch.setattr(Space, "lower", wrong)

    return break_them


def test_schedules_are_distinct_valid_and_alike_often_of_each_template(space):
    schedules = draw(space, 40, seed=5)
    assert len(set(schedules)) == len(schedules)
    assert all(schedule in space for schedule in schedules)
    counts = Counter(schedule.template for schedule in schedules)
    assert set(counts) == set(space.templates)
    assert max(counts.values()) == -(-40 // len(space.templates))
    assert draw(space, 40, seed=5) == schedules != draw(space, 40, seed=6)


@settings(max_examples=50, deadline=None)
@given(*[st.integers(1, 40000)] * 3)
def test_what_is_emulated_is_small_and_has_the_same_tails(m, n, k):
    asked = workload("matmul", m=m, n=n, k=k, dtype="float16", a="col", epilogue="gelu(x)")
    small = emulable(asked)
    extents = small.extents
    for name, extent in asked.extents.items():
        assert 1 <= extents[name] <= extent
        assert (extent - extents[name]) % 256 == 0
    assert np.prod(list(extents.values())) <= verification.LARGEST
    same = {name: value for name, value in small.parameters if name not in extents}
    assert same == {name: value for name, value in asked.parameters if name not in extents}
    assert emulable(small) is small


def test_of_a_large_batch_a_few_products_are_emulated():
    small = emulable(workload("matmul", batch=512, m=512, n=512, k=64, dtype="bfloat16"))
    assert small == workload("matmul", batch=3, m=512, n=512, k=64, dtype="bfloat16")


@pytest.mark.parametrize(
    ("asked", "small"),
    [
        ("softmax r=4000 c=9001", "softmax r=416 c=553"),
        ("layernorm r=100 c=200", "layernorm r=100 c=200"),
        ("sum shape=4096x4096 over=1", "sum shape=4096x4096 over=1"),
        ("attention b=1 h=8 i=1024 j=1024 d=64 kv=2", None),
    ],
)
def test_of_a_large_program_fewer_rows_and_columns_are_emulated(asked, small):
    asked = workload(asked)
    found = emulable(asked)
    if small:
        assert found == workload(small)
    assert found.operator == asked.operator
    for name, extent in asked.extents.items():
        assert (extent - found.extents[name]) % 256 == 0


def test_right_kernels_are_right_and_wrong_ones_are_told(space, broken):
    schedules = draw(space, 2 * len(space.templates))
    eager = [Interleaving("eager")]
    verdicts = list(emulate(space, schedules, eager))
    assert [v.schedule for v in verdicts] == schedules
    assert all(v.right for v in verdicts), verdicts
    broken()
    for verdict in emulate(space, schedules, eager):
        assert verdict.error_kind is ErrorKind.WRONG
        assert not verdict.refused
        assert "elements of C are wrong" in verdict.error_text


def test_the_folder_of_libraries_goes_when_no_thread_needs_it(space, monkeypatch):
    def close(folder: RunDirectory) -> None:
        working.append([t for t in threading.enumerate() if t.name.startswith("emulate")])
        close_folder(folder)

    working: list[list[threading.Thread]] = []  # as each folder goes, those of others too
    close_folder = RunDirectory.close
    monkeypatch.setattr(RunDirectory, "close", close)
    verdicts = emulate(space, draw(space, 64), jobs=2)
    assert next(verdicts).right
    assert any(thread.name.startswith("emulate") for thread in threading.enumerate())
    verdicts.close()
    assert working[-1] == []


def test_kernels_of_this_machine_are_run():
    space = space_for(WORK, detect_target("cpu"))
    schedules = draw(space, 4)
    verdicts = list(measure(space, schedules))
    assert {v.schedule for v in verdicts} == set(schedules)
    assert all(v.right for v in verdicts), verdicts


WORDS = ["verify", "matmul", "m=33", "n=18", "k=20", "epilogue=relu(x)", "--target", "cuda:sm_80"]


def test_the_command_prints_a_table_and_says_what_was_shortened(capsys):
    assert run([*WORDS, "--schedules", "2"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "emulated" in shown[0]
    assert any(line.split()[:1] == ["simt"] for line in shown)


def test_kernels_of_a_cpu_with_a_number_of_threads_are_run(capsys):
    words = ["verify", "matmul", "m=33", "n=18", "k=20", "--schedules", "2"]
    assert run([*words, "--target", "cpu:threads=1", "--format", "json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert not outcome["emulated"]
    assert sum(each["right"] for each in outcome["templates"].values()) == 2


def test_the_command_gives_a_sign_of_life_while_kernels_are_emulated(capsys, monkeypatch):
    monkeypatch.setattr(lines, "SILENCE_SECONDS", 0.01)
    assert run([*WORDS, "--schedules", "2"]) == 0
    assert re.search(r"^0:\d\d  0 of \d+ schedules checked$", capsys.readouterr().out, re.MULTILINE)
    assert run([*WORDS, "--schedules", "1", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["emulated"]


def test_the_command_fails_where_a_kernel_is_wrong(capsys, broken):
    broken()
    assert run([*WORDS, "--schedules", "2"]) == 1
    assert "first failure: wrong_result:" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_command_fails_where_nothing_could_be_checked(tmp_path, capsys, monkeypatch, form):
    """As on a machine without memory for its compiler."""
    compiler = tmp_path / "killed"
    compiler.write_text('#!/bin/sh\ncase "$*" in *unit*) kill -9 $$;; esac\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert (
        run(["verify", "matmul", "m=64", "n=64", "k=64", "--schedules", "1", "--format", form]) == 1
    )
    said = capsys.readouterr().err
    assert said.startswith(
        "tilewright: nothing could be checked: the compiler was killed by SIGKILL"
    )
    assert said.count("\n") == 1


def test_the_command_prints_json(capsys):
    assert run([*WORDS, "--schedules", "1", "--format", "json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["emulated"]
    assert outcome["failures"] == []
    assert outcome["workload"] == outcome["checked"]
    simt = outcome["templates"]["simt"]
    assert simt == {"schedules": 1, "right": 1, "refused": 0, "wrong": 0}


def test_a_workload_that_nothing_can_be_told_of_is_refused_before_anything_is_measured(
    tmp_path, capsys
):
    words = ["matmul", "m=8", "n=8", "k=8", "epilogue=x * 0 + b[n]"]
    assert run(["tune", *words, "--db", str(tmp_path / "a.db")]) == 2
    assert run(["verify", *words]) == 2
    for line in capsys.readouterr().err.splitlines():
        assert "cannot be verified: whatever its inputs" in line
