"""Command lines of words that fit, nearly fit or were never meant to."""

from __future__ import annotations

import os
import random
import shutil
import stat
from pathlib import Path

import pytest

from tests.fuzz.commands import WORDS, command

ALL = pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)], id="all")

VALUES = (
    *("", " ", "0", "1", "2", "-1", "+3", "07", "1_0", "3.5", "1e3", "nan", "inf", "-inf", "1e400"),
    *("9" * 30, "9" * 5000, "１２", "0x10", "true", "None", "row", "col", "float32", "bfloat16"),
    *("int8", "float31", "x", "x" * 3000, "\udcff", "\x1b[31m", "a=b", "=", "--", "-", "*", "é"),
    *("relu(x + bias[n])", "x + 1if x", "x" + " + 1" * 500, "(" * 500, "__import__('os')"),
    *("x[0]", "x / 0", "x ** x", "lambda: x", "gelu(x) * r[m,n]", "bias[q]", "x + x.real", "\\"),
)
PATHS = (
    *("t.db", "t.jsonl", "t.json", "notes.txt", "none", "", ".", "..", "folder", "folder/x"),
    *("notes.txt/x", "null", "full", "zero", "pipe", "none/x", "\udcff", "x" * 300, "readonly.db"),
    *("sqlite:///t.db", "sqlite:///a%00b", "sqlite://", "mysql://h/x", "://", "postgresql://"),
    *("sqlite:///:memory:", "file:t.db?mode=rwc", "http://x", "sqlite+x:///t.db", "a\nb"),
)
NAMES = (
    "m",
    "n",
    "k",
    "dtype",
    "out",
    "a",
    "b",
    "c",
    "epilogue",
    "accumulator",
    "",
    "q",
    "operator",
)
OPTIONS = {
    "tune": ("--target", "--threads", "--trials", "--seconds", "--patience", "--db", "--seed"),
    "query": ("--target", "--threads", "--db", "--source", "--format"),
    "verify": ("--target", "--threads", "--schedules", "--seed", "--format"),
    "train": ("--db", "--out"),
    "evaluate": ("--db",),
    "export": ("--db",),
    "import": ("--db",),
    "list": ("--db",),
    "doctor": ("--threads",),
    "bundle": ("--limit-mib", "--python", "--machine", "--wheel"),
}
TARGETS = (
    "cpu",
    "cuda",
    "cuda:sm_80",
    "cuda:sm_90a",
    "cuda:sm_12",
    "cuda:",
    "cpu:0",
    "tpu",
    "",
    "CPU",
)


def words(rng: random.Random) -> list[str]:
    """A command line. It may do some work, but not for long."""
    name = rng.choice([*OPTIONS, "query", "query", "import", "evaluate", rng.choice(VALUES)])
    said = [name]
    if name in ("tune", "query", "verify"):
        said += _request(rng)
    elif name in ("evaluate", "export", "import", "bundle"):
        said += [rng.choice(PATHS) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        said += _option(rng, name)
    return said + _brakes(name)


def _request(rng: random.Random) -> list[str]:
    said = list(WORDS)
    if rng.random() < 0.2:
        said[0] = rng.choice(["conv", *VALUES])
    for _ in range(rng.choice([0, 1, 1, 2])):
        at = rng.randrange(1, len(said) + 1)
        word = f"{rng.choice(NAMES)}={rng.choice(VALUES)}"
        said[at : at + rng.choice([0, 1])] = [rng.choice([word, word, rng.choice(VALUES)])]
    return said


def _option(rng: random.Random, name: str) -> list[str]:
    option = rng.choice([*OPTIONS.get(name, ()), "--help", "--unknown", "-q", "-h", "--version"])
    if option in ("--db", "--out", "--wheel"):
        return [option, rng.choice(PATHS)]
    if option == "--target":
        return [option, rng.choice(TARGETS)]
    return [option] + [rng.choice(VALUES)] * rng.choice([0, 1, 1, 1])


def _brakes(name: str) -> list[str]:
    """The last words of a command that could take long: they win over what was said before."""
    return {
        "tune": ["--trials", "2", "--seconds", "2"],
        "verify": ["--schedules", "2"],
        "bundle": ["--wheel", "no wheel at all", "--limit-mib", "0"],
    }.get(name, [])


def furnish(folder: Path, ground) -> None:
    """Put into ``folder`` what :data:`PATHS` names."""
    for file in (ground.database, ground.export, ground.model):
        shutil.copy(file, folder / file.name)
    (folder / "notes.txt").write_text("buy milk\n" * 99)
    (folder / "folder").mkdir()
    shutil.copy(ground.database, folder / "readonly.db")
    (folder / "readonly.db").chmod(0o444)
    os.mkfifo(folder / "pipe")
    if os.geteuid() == 0:  # devices of our own: nothing may take the place of the system's
        for name, minor in (("null", 3), ("zero", 5), ("full", 7)):
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))


@pytest.mark.parametrize("count", [24, ALL])
def test_any_command_line_ends_in_a_result_or_in_one_line(ground, place, survive, count):
    def act(number):
        def run():
            rng = random.Random(f"words {number}")
            folder = place / f"{number}"
            folder.mkdir()
            furnish(folder, ground)
            kinds = {path.name: stat.S_IFMT(path.stat().st_mode) for path in folder.iterdir()}
            os.chdir(folder)
            command(*words(rng))
            for name, kind in kinds.items():
                assert stat.S_IFMT((folder / name).stat().st_mode) == kind, f"{name} is another"
            os.chdir(place)
            shutil.rmtree(folder)

        return run

    survive(act, count)
