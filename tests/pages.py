"""Pages of Markdown whose blocks of code run, from top to bottom, in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- not run by tests: [^>]+ -->\n)?```(\w+)\n(.*?)\n```", re.DOTALL)
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "scheduler/face")))
PROGRAMS = {"python": [sys.executable, "-c"], "sh": ["/bin/sh", "-e", "-c"]}
"""What runs a block of each language; blocks of others are for reading."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block that runs."""
    found = BLOCK.findall(page.read_text())
    return [(language, text) for reason, language, text in found if not reason]


def environment(folder: Path) -> dict[str, str]:
    """An environment in which ``tilewright`` is this checkout's; its command is put in ``folder``,
    and the kernels that it builds are kept there."""
    command = folder / "bin/tilewright"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tilewright "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(command.parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": PATHS}


def run(language: str, text: str, folder: Path, variables: dict[str, str]) -> str:
    """Run one block; what it printed. It must succeed, and say nothing on standard error."""
    command = [*PROGRAMS[language], text]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    assert done.stderr == "" or "--source" in text, f"{text}\n{done.stderr}"
    return done.stdout


def quickly(text: str) -> str:
    """The same with few schedules and trials: as many as training, a suite or an interruption need,
    or next to none."""
    trials = 8 if re.search("train|suite|kill", text) else 2
    text = re.sub(r"trials([= ])\d+", rf"trials\g<1>{trials}", text)
    return re.sub(r"--schedules \d+", "--schedules 1", text)
