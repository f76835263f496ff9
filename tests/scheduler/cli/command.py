"""How tests run the command line, in this process or in one of its own."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.forked import client
from tilewright.scheduler.cli.app import run

TRIALS = 8  # of each workload in the tuned database
SMALL = ("matmul", "m=64", "n=64", "k=64")
FUSED = ("matmul", "m=96", "n=64", "k=64", "epilogue=relu(x + bias[n])")
COMMAND = (sys.executable, "-m", "tilewright")
ROOT = Path(__file__).parents[3]
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "scheduler/face")))


def start(*arguments: str, **options) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": PATHS}
    return subprocess.Popen([*COMMAND, *arguments], env=environment, **{"text": True} | options)


def without(libraries: set[str], *arguments: str, cwd: Path) -> tuple[int, str, str]:
    """What :func:`finished` gives of a process in which none of ``libraries`` can be imported."""
    program = (
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {sorted(libraries)}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}')\n"
        "sys.meta_path.insert(0, Blocker())\n"
        "from tilewright.scheduler.cli import main; main()\n"
    )
    environment = os.environ | {"PYTHONPATH": PATHS}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def finished(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a whole process, see :mod:`tests.forked`."""
    command = [*shlex.split(client()), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=150)
    return done.returncode, done.stdout, done.stderr


def on_terminal(*arguments: str, cwd, term: str = "xterm") -> tuple[int, str]:
    """The exit code, and all that a command writes to a terminal, without colours and moves."""
    code, written = written_to_terminal(*arguments, cwd=cwd, term=term)
    return code, re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", written)


def written_to_terminal(
    *arguments: str, cwd, term: str = "xterm", columns: int = 120
) -> tuple[int, str]:
    """The exit code, and all that a command writes to a terminal of so many columns."""
    terminal, inside = pty.openpty()
    environment = os.environ | {"PYTHONPATH": PATHS, "TERM": term, "COLUMNS": str(columns)}
    command = [*shlex.split(client()), *arguments]
    with subprocess.Popen(
        command, env=environment, cwd=cwd, stdout=inside, stderr=inside
    ) as process:
        os.close(inside)
        shown = b""
        try:
            while chunk := os.read(terminal, 1 << 16):
                shown += chunk
        except OSError:  # the other end is closed
            pass
    os.close(terminal)
    return process.returncode, shown.decode()


def ask(capsys, *arguments: str) -> str:
    """What the command prints; it must succeed."""
    capsys.readouterr()
    assert run(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def one_line(text: str) -> str:
    """``text``, which must be one remark on standard error."""
    assert text.startswith("tilewright: ")
    assert text.count("\n") == 1
    assert text.endswith("\n")
    return text
