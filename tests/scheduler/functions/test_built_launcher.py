"""The part of launches in C: when it is built, and what happens where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.scheduler.functions.headers import HEADER, needs_header
from tilewright.scheduler.functions import extension
from tilewright.scheduler.functions.extension import FLAGS
from tilewright.scheduler.functions.launcher import SOURCE, compiled_start


@needs_header
def test_it_compiles_without_a_warning(tmp_path):
    include = f"-I{HEADER.parent}"
    command = ["gcc", *FLAGS, "-Werror", include, SOURCE, "-o", tmp_path / "launcher.so"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""


@pytest.fixture
def compile_afresh(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return compiled_start.__wrapped__


@needs_header
def test_it_is_built_once_and_kept(tmp_path, monkeypatch, compile_afresh):
    assert compile_afresh()((), {}, (), None) is None
    (kept,) = tmp_path.rglob("launcher-*")
    built = kept.stat().st_mtime_ns
    assert compile_afresh()((), {}, (), None) is None
    assert kept.stat().st_mtime_ns == built


def test_it_is_left_where_it_cannot_be_built(tmp_path, monkeypatch, compile_afresh):
    broken = tmp_path / "cc"
    broken.write_text('#!/bin/sh\ncase "$*" in *launcher.c*) exit 1;; esac\nexec gcc "$@"\n')
    broken.chmod(0o755)
    for compiler in ("/nonexistent/cc", str(broken)):
        monkeypatch.setenv("CC", compiler)
        assert compile_afresh() is None
    monkeypatch.delenv("CC")
    monkeypatch.setattr(extension.sysconfig, "get_path", lambda name: str(tmp_path))
    assert compile_afresh() is None
    assert not list(tmp_path.rglob("launcher-*"))


def test_imports_build_nothing(tmp_path):
    modules = ("best", "functions.cuda_function", "tuning.tuner")
    script = f"import {', '.join(f'tilewright.scheduler.{module}' for module in modules)}"
    variables = {"XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=os.environ | variables, check=True)
    assert list(tmp_path.iterdir()) == []
