"""Pages of Markdown whose blocks of code run, from top to bottom, in one folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from tests.forked import PYTORCH, client

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- not run by tests: [^>]+ -->\n)?```(\w+)\n(.*?)\n```", re.DOTALL)
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "scheduler/face")))
EACH = """\
import sys
from types import ModuleType
for text in sys.argv[1:]:
    sys.modules["__main__"] = ModuleType("__main__")
    exec(text, sys.modules["__main__"].__dict__)
"""
"""Runs blocks of Python one after the other, which share no names but what they import."""
EXTRACT = "tilewright extract"
"""A command that loads PyTorch."""
LANGUAGES = ("python", "sh")
"""Languages of blocks that run; those of others are for reading."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block that runs."""
    found = BLOCK.findall(page.read_text())
    return [(language, text) for reason, language, text in found if not reason]


def used(text: str) -> set[str]:
    """Commands, options and names of the package that a text has."""
    listed = re.findall(r"^from tilewright\S* import (.*)$", text, re.MULTILINE)
    words = re.findall(r"\btilewright[ .](\w+)|(?<=\s)(--[a-z-]+)", text)
    return {*", ".join(listed).split(", "), *(word for found in words for word in found)}


def environment(folder: Path, found: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """An environment in which ``tilewright`` is this checkout's; its command is put in ``folder``,
    and the kernels that it builds are kept there. It is for the blocks that were ``found``."""
    command = folder / "bin/tilewright"
    command.parent.mkdir()
    script = f'exec {client()} "$@"\n'
    if any(EXTRACT in text for language, text in found if language == "sh"):
        script = f'case $1 in extract) exec {client(*PYTORCH)} "$@";; esac\n{script}'
    command.write_text(f"#!/bin/sh\n{script}")
    command.chmod(0o755)
    path = os.pathsep.join([str(command.parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": PATHS}


def run_all(found: Iterable[tuple[str, str]], folder: Path, variables: dict[str, str]) -> None:
    """Run each block whose language has a program; those of Python that follow each other in one
    process, so that they load PyTorch once."""
    runs = (block for block in found if block[0] in LANGUAGES)
    for language, group in groupby(runs, key=itemgetter(0)):
        texts = [text for _, text in group]
        for part in [texts] if language == "python" else [[text] for text in texts]:
            run(language, part, folder, variables)


def run(language: str, texts: Sequence[str], folder: Path, variables: dict[str, str]) -> str:
    """Run blocks of one language; what they printed. They must succeed, and say nothing on standard
    error."""
    text = "\n\n".join(texts)
    if language == "sh":
        program = ["/bin/sh", "-e", "-c"]
    else:
        modules = PYTORCH if "import torch" in text else ()
        program = [*shlex.split(client(*modules)), "-c", EACH]
    command = [*program, *texts]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    assert done.stderr == "" or "--source" in text, f"{text}\n{done.stderr}"
    return done.stdout


def quickly(text: str) -> str:
    """The same with few schedules and trials: at most as many as training, a suite or an
    interruption need, or next to none; what tunes as long as it may has less time."""
    most = 8 if re.search("train|suite|kill", text) else 2
    text = re.sub(r"(?<=trials[= ])\d+", lambda given: str(min(int(given[0]), most)), text)
    text = re.sub(r"--tune --seconds \d+", "--tune --seconds 5", text)
    return re.sub(r"--schedules \d+", "--schedules 1", text)
