"""Command lines of words that fit, nearly fit or were never meant to."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from tests.fuzz.children import tell
from tests.fuzz.commands import PROGRAM, SEGMENTS, WORDS, check_streams, command, rightly
from tilewright.scheduler.cli.app import app

ALL = pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)], id="all")
TOGETHER = 20  # lines in one process, so that little of its time goes into starting it
SAMPLE = pytest.param(range(0, 2000, 20), marks=[pytest.mark.slow, pytest.mark.timeout(3600)])
LIMIT = 1200.0  # seconds of one process, on a machine that is busy with other things

VALUES = (
    *("", " ", "0", "1", "2", "-1", "+3", "07", "1_0", "3.5", "1e3", "nan", "inf", "-inf", "1e400"),
    *("9" * 30, "9" * 5000, "１２", "0x10", "true", "None", "row", "col", "float32", "bfloat16"),
    *("int8", "float31", "x", "x" * 3000, "\udcff", "\x1b[31m", "a=b", "=", "--", "-", "*", "é"),
    *("relu(x + bias[n])", "x + 1if x", "x" + " + 1" * 500, "(" * 500, "__import__('os')"),
    *("x[0]", "x / 0", "x ** x", "lambda: x", "gelu(x) * r[m,n]", "bias[q]", "x + x.real", "\\"),
    *("y[r] = sum[c](x[r, c])", "where j < n[i]; y[i] = max[j](x[i,j])", "y[r, c] = z[r, c]"),
    *("n: int32[i](index < 9); y[i] = n[i]", "y[r] = sum[r](x[r])", "-> y", "y = 1;" * 400),
    *("softmax", "random,genetic", "evolutionary", "embedding", "strict", "fast"),
    *("3d", "2026-11-28", "9999-12-31", "latency_s", "best", "matmul"),
)
PATHS = (
    *("t.db", "t.jsonl", "t.json", "notes.txt", "none", "", ".", "..", "folder", "folder/x"),
    *("notes.txt/x", "null", "full", "zero", "pipe", "none/x", "\udcff", "x" * 300, "readonly.db"),
    *("sqlite:///t.db", "sqlite:///a%00b", "sqlite://", "mysql://h/x", "://", "postgresql://"),
    *("sqlite:///:memory:", "file:t.db?mode=rwc", "http://x", "sqlite+x:///t.db", "a\nb"),
    *("suite.toml", "bert-base", "mine.tw", "wrong.tw"),
)
REQUESTS = (
    *(WORDS, WORDS, WORDS),
    ("softmax", "r=24", "c=20"),
    PROGRAM,
    SEGMENTS,
    ("y[r, c] = relu(x[r, c] + b[c])", "r=9", "c=7"),
    ("n: int32[r](index < 8); where c < n[r]; y[r] = logsumexp[c](x[r, c])", "r=9", "c=7"),
)
NAMES = (
    *("m", "n", "k", "dtype", "out", "a", "b", "c", "epilogue", "accumulator", "", "q"),
    *("operator", "r", "experts", "rows"),
)
OPTIONS = {
    "tune": (
        *("--target", "--threads", "--trials", "--seconds", "--patience", "--db", "--seed"),
        *(
            "--suite",
            "--section",
            "--objective",
            "--model",
            "--format",
            "-v",
            "--executor",
            "--address",
        ),
        *("--file", "--search", "--quiet", "--verbose", "--insecure-cluster"),
        *(
            "--numerics",
            "--effort",
            "--gradient",
            "--saved",
            "--solved",
            "--memory",
            "--held",
            "--table",
        ),
    ),
    "resume": (
        *("--db", "--model", "--format", "-v", "--executor", "--address", "--insecure-cluster"),
        *("--quiet", "--verbose"),
    ),
    "query": (
        *("--target", "--threads", "--db", "--source", "--model", "--format", "--file"),
        *("--numerics", "--gradient", "--saved", "--solved", "--memory", "--held", "--table"),
    ),
    "verify": (
        *("--target", "--threads", "--schedules", "--seed", "--format", "--file"),
        *("--gradient", "--saved", "--solved", "--table"),
    ),
    "dispatch": (
        *("--profile", "--kernels", "--axis", "--tune", "--seconds", "--out", "--python"),
        *("--target", "--threads", "--db", "--format", "--file"),
    ),
    "replay": (
        *("--search", "--trials", "--repeats", "--batch", "--seed", "--time", "--jobs"),
        "--format",
    ),
    "show": (
        *(
            "--file",
            "--target",
            "--threads",
            "--gradient",
            "--saved",
            "--solved",
            "--table",
            "--schedule",
            "--source",
        ),
    ),
    "operators": ("--format",),
    "targets": ("--format",),
    "train": ("--db", "--out", "--format"),
    "evaluate": ("--db", "--split", "--format"),
    "explain": (
        *("--db", "--workload", "--plot", "--target", "--threads", "--format", "--file"),
        "--table",
    ),
    "export": (
        *("--db", "--format", "--features", "--operator", "--target", "--since", "--failed"),
        *("--sort", "--limit"),
    ),
    "import": ("--db",),
    "list": (
        *("--db", "--sessions", "--format", "--operator", "--target", "--since", "--failed"),
        *("--sort", "--limit"),
    ),
    "suite list": ("--format",),
    "suite seal": ("--out", "--decoys", "--seed", "--target", "--threads"),
    "suite match": ("--db",),
    "report": ("--db", "--out", "--compare", "--format", "--only"),
    "pack": ("--out", "--format"),
    "db stats": ("--db", "--format"),
    "db vacuum": ("--db", "--format"),
    "db merge": ("--into", "--format"),
    "doctor": ("--threads",),
    "cache": ("--clear", "--format"),
    "bundle": ("--limit-mib", "--python", "--machine", "--wheel"),
    "completion": (),
}
READING = (
    "evaluate",
    "suite seal",
    "suite match",
    "explain",
    "export",
    "import",
    "bundle",
    "resume",
    "db merge",
    "pack",
    "replay",
)
"""Commands that are given a file, or a name."""
FILES = (
    *("--db", "--into", "--model", "--out", "--suite", "--wheel", "--plot", "--file"),
    "--compare",
)
"""Options that are given a file."""
NOT_DRAWN = ("status", "extract", "dashboard")
"""Commands that ask a Ray cluster, execute the file that they are given, or serve until they are
stopped."""
TARGETS = (
    *("cpu", "cuda", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_12", "cuda:", "cpu:0", "tpu"),
    *("", "CPU"),
)
LINES = "s[r, c] = x[r, c] * 2 + b[c]\ny[r] = max[c](s[r, c])\n"
SUITE = """
title = "two products"

[[workloads]]
name = "first"
operator = "matmul"
parameters = { m = 24, n = 20, k = 16 }

[[workloads]]
name = "second"
operator = "matmul"
parameters = { m = 16, n = 20, k = 24 }
weight = 2
"""


def words(rng: random.Random) -> list[str]:
    """A command line. It may do some work, but not for long."""
    name = rng.choice([*OPTIONS, "query", "query", "import", "evaluate", rng.choice(VALUES)])
    said = name.split() or [name]
    if name in ("tune", "query", "verify", "show", "dispatch") or (
        name == "explain" and rng.random() < 0.5
    ):
        said += _request(rng)
    elif name in READING:
        said += [rng.choice(PATHS) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        said += _option(rng, name)
    return said + _brakes(name, "--tune" in said)


def _request(rng: random.Random) -> list[str]:
    said = list(rng.choice(REQUESTS))
    if rng.random() < 0.2:
        said[0] = rng.choice(["conv", *VALUES])
    for _ in range(rng.choice([0, 1, 1, 2])):
        at = rng.randrange(1, len(said) + 1)
        word = f"{rng.choice(NAMES)}={rng.choice(VALUES)}"
        said[at : at + rng.choice([0, 1])] = [rng.choice([word, word, rng.choice(VALUES)])]
    return said


def _option(rng: random.Random, name: str) -> list[str]:
    option = rng.choice([*OPTIONS.get(name, ()), "--help", "--unknown", "-q", "-h", "--version"])
    if option in FILES:
        return [option, rng.choice(PATHS)]
    if option == "--target":
        return [option, rng.choice(TARGETS)]
    return [option] + [rng.choice(VALUES)] * rng.choice([0, 1, 1, 1])


def _brakes(name: str, tunes: bool) -> list[str]:
    """The last words of a command that could take long: they win over what was said before."""
    return {
        "dispatch": ["--profile", "1-9:1", "--kernels", "1", *["--seconds", "1"] * tunes],
        "tune": ["--trials", "2", "--seconds", "2"],
        "verify": ["--schedules", "2"],
        "replay": ["--trials", "2", "--repeats", "1", "--jobs", "1"],
        "bundle": ["--wheel", "no wheel at all", "--limit-mib", "0"],
    }.get(name, [])


def furnish(folder: Path, ground) -> None:
    """Put into ``folder`` what :data:`PATHS` names."""
    for file in (ground.database, ground.export, ground.model):
        shutil.copy(file, folder / file.name)
    (folder / "notes.txt").write_text("buy milk\n" * 99)
    (folder / "suite.toml").write_text(SUITE)
    (folder / "mine.tw").write_text(LINES)
    (folder / "wrong.tw").write_text(LINES.replace("max[c]", "max[r]"))
    (folder / "folder").mkdir()
    shutil.copy(ground.database, folder / "readonly.db")
    (folder / "readonly.db").chmod(0o444)
    os.mkfifo(folder / "pipe")
    if os.geteuid() == 0:  # devices of our own: nothing may take the place of the system's
        for name, minor in (("null", 3), ("zero", 5), ("full", 7)):
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))


def line(number: int) -> list[str]:
    """The command line of this number."""
    return words(random.Random(f"words {number}"))


def act_on(number: int, folder: Path, ground) -> None:
    """Give one command line in a folder of its own. The files of the folder stay of their kind,
    and if all went well the database there still answers rightly."""
    said = line(number)
    tell(f"{number}: {said!r:.500}")
    folder.mkdir()
    furnish(folder, ground)
    kinds = {path.name: stat.S_IFMT(path.stat().st_mode) for path in folder.iterdir()}
    os.chdir(folder)
    code = command(*said)
    for name, kind in kinds.items():
        assert stat.S_IFMT((folder / name).stat().st_mode) == kind, f"{name} is another"
    if not code and said[0] in ("tune", "resume", "import", "db"):
        rightly("t.db")
    os.chdir(folder.parent)
    shutil.rmtree(folder)


def offered(name: str, command: Any) -> Iterator[tuple[str, set[str]]]:
    """Every command, with its long options."""
    for other, below in getattr(command, "commands", {}).items():
        yield from offered(f"{name} {other}".strip(), below)
    if not hasattr(command, "commands"):
        names = {option for parameter in command.params for option in parameter.opts}
        yield name, {option for option in names if option.startswith("--")} - {"--help"}


def test_every_command_and_option_is_drawn():
    every = dict(offered("", typer.main.get_command(app([]))))
    assert set(OPTIONS) == set(every) - set(NOT_DRAWN)
    missing = {name: every[name].difference(drawn) for name, drawn in OPTIONS.items()}
    assert not any(missing.values()), missing


@pytest.mark.parametrize("count", [40, ALL])
def test_any_command_line_ends_in_a_result_or_in_one_line(ground, place, survive, count):
    def act(first):
        def run():
            for number in range(first, min(count, first + TOGETHER)):
                act_on(number, place / f"{number}", ground)

        return run

    survive(lambda number: act(number * TOGETHER), -(-count // TOGETHER), LIMIT)


@pytest.mark.parametrize("numbers", [(0, 700, 1400), SAMPLE])
def test_a_process_of_its_own_ends_so_too(ground, place, numbers):
    furnish(place, ground)
    program = [sys.executable, "-c", "from tilewright.scheduler.cli import main; main()"]
    for number in numbers:
        said = line(number)
        done = subprocess.run([*program, *said], capture_output=True, timeout=LIMIT)
        printed, remarks = (text.decode() for text in (done.stdout, done.stderr))
        check_streams(said, done.returncode, printed, remarks)
