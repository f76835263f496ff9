"""Binaries in the cache: damage never reaches a process, and failures are one sentence."""

import os
import subprocess
import sys

import pytest

from tilewright.measure.cpu.binaries import Build, keeper_binary, server_binary
from tilewright.measure.cpu.compilation import SHARED
from tilewright.spaces.errors import InputError

BEST = """
import numpy as np
from tilewright.scheduler.best import best
from tilewright.spaces.operators import workload
a, b = np.eye(33, dtype=np.float32) * 2, np.ones((33, 33), np.float32)
print(best(workload("matmul", m=33, n=33, k=33), "cpu", None)(a, b).sum())
"""
ANSWER = {"answer.c": "int answer(void) { return 42; }"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tilewright" / "binaries"


def run_best():
    done = subprocess.run([sys.executable, "-c", BEST], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"\x00\x00\x00", b"\x00\x01\x00"),
    ],
    ids=["half", "flipped"],
)
def test_a_function_works_whatever_became_of_the_files_it_is_made_of(folder, damage):
    assert run_best() == (0, "2178.0", "")
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    assert len(kept) in (3, 4), "kernel, pool, keeper of compilers; with Python's headers a caller"
    for path, content in kept.items():
        path.write_bytes(damage(content))
    assert run_best() == (0, "2178.0", "")
    assert {path: path.stat().st_size for path in folder.iterdir()}.keys() == kept.keys()
    for path in kept:
        assert path.read_bytes().startswith(b"\x7fELF")


def test_a_server_that_was_damaged_or_may_not_run_is_put_right(folder):
    path = server_binary()
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    assert server_binary().read_bytes()[:1000] == whole[:1000]
    path.chmod(0o600)
    assert os.access(server_binary(), os.X_OK)


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Puts a script in the compiler's place, once the real one has said what it is and has built
    the program under which compilers run."""

    def put(script):
        keeper_binary()
        fake = tmp_path / "cc"
        fake.write_text(f'#!/bin/sh\ncase "$*" in *-dM*) exec gcc "$@";; esac\n{script}\n')
        fake.chmod(0o755)
        monkeypatch.setenv("CC", str(fake))

    return put


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'error: no room for you' >&2; exit 1", "no room for you"),
        ("exit 1", "cannot build the answer"),
        ("kill -9 $$", "cannot build the answer"),
        ("exit 0", "no output"),
        ('while [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done', "no output"),
        ('while [ $# -gt 1 ]; do [ "$1" = -o ] && echo text > "$2"; shift; done', "no output"),
        ("yes | head -c 100000 >&2; exit 1", "cannot build the answer"),
    ],
)
def test_a_compiler_that_fails_is_one_sentence_and_leaves_nothing(folder, compiler, script, reason):
    compiler(script)
    with pytest.raises(InputError, match=reason) as error:
        Build("answer", ANSWER, SHARED).load(lambda path: path)
    assert len(str(error.value)) < 1500
    assert not list(folder.glob("answer*"))


def test_a_full_disk_is_one_sentence(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tilewright.measure.cpu.binaries.Path.write_text", full)
    with pytest.raises(InputError, match=r"cannot build the answer in .*No space left.*XDG"):
        Build("answer", ANSWER, SHARED).load(lambda path: path)


def test_what_does_not_load_is_built_again_once(folder, compiler):
    attempts = []

    def refuse(path):
        attempts.append(path)
        raise OSError("wrong machine")

    with pytest.raises(InputError, match="cannot be loaded: wrong machine"):
        Build("answer", ANSWER, SHARED).load(refuse)
    assert len(attempts) == 2
    assert not list(folder.glob("answer*"))
