"""Plays a newcomer: installs the wheel in a fresh environment, and does what the README says.

    python tests/release/newcomer.py [--python PYTHON]

The environment lies outside the repository, with an empty cache, and gets binary packages alone:
nothing is compiled for the installation. The first block of Python in the README is run as it
stands. The script prints what that printed, how many commands and lines it took, and the time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.pages import blocks  # noqa: E402  (of this repository)

PARTS = (
    *("pyproject.toml", "setup.py", "README.md", "LICENSE"),
    *("spaces", "measure", "costmodel", "scheduler"),
)
"""Files and folders that a wheel is made of."""
BUILD = "from setuptools import build_meta; print(build_meta.build_wheel('made'))"
HEADERS = ("CPATH", "C_INCLUDE_PATH")
"""Variables that may lead a compiler to Python's headers."""


def built_wheel(folder: Path) -> Path:
    """A wheel of this checkout, built in ``folder``; the checkout stays as it is."""
    for name in PARTS:
        (folder / name).symlink_to(ROOT / name)
    run([sys.executable, "-c", BUILD], folder)
    [wheel] = (folder / "made").glob("tilewright-*.whl")
    return wheel


def first_kernel() -> str:
    """The README's first block of Python."""
    return next(text for language, text in blocks(ROOT / "README.md") if language == "python")


def steps(program: str) -> tuple[int, int]:
    """How many commands a newcomer types (install, run), and lines of a program."""
    lines = [line for line in program.splitlines() if line.strip() and line.strip()[0] != "#"]
    return 2, len(lines)


def environment(folder: Path) -> dict[str, str]:
    """Variables of somebody who has never used this program, and whose compiler finds no headers
    of Python."""
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    kept = {k: v for k, v in os.environ.items() if k not in HEADERS and not k.startswith("PYTHON")}
    return kept | own


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What a command printed on standard output. It must succeed."""
    variables = environment(folder)
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def play(python: str, folder: Path) -> None:
    """Install and run in ``folder``, and print what it took."""
    (folder / "source").mkdir()
    wheel = built_wheel(folder / "source")
    begin = time.monotonic()
    run([python, "-m", "venv", "env"], folder)
    own = folder / "env/bin/python"
    install = [own, "-m", "pip", "install", "--quiet", "--only-binary=:all:", str(wheel)]
    run(install, folder)
    installed = time.monotonic()
    size = sum(path.lstat().st_size for path in (folder / "env").rglob("*")) / 1e6
    program = first_kernel()
    print(run([own, "-c", program], folder).strip())
    end = time.monotonic()
    print("{} commands and {} lines".format(*steps(program)))
    print(f"{size:.0f} MB installed in {installed - begin:.0f} s", end="; ")
    print(f"tuned and called in {end - installed:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Play a newcomer, by the README's text alone.")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to install for")
    with tempfile.TemporaryDirectory() as name:
        play(parser.parse_args().python, Path(name))
