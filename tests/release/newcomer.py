"""Plays a newcomer: installs the wheel in a fresh environment, and does what the README says.

    python tests/release/newcomer.py [--python PYTHON] [--without-headers]

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
    """Variables of somebody who has never used this program."""
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | own


def take_headers(folder: Path) -> None:
    """Make ``env`` in ``folder`` one of a Python without headers, as distributions package it: its
    base becomes a folder that has the library of the real one alone."""
    settings = folder / "env/pyvenv.cfg"
    lines = settings.read_text().splitlines()
    [home] = [Path(line.partition(" = ")[2]) for line in lines if line.startswith("home = ")]
    base = folder / "base"
    (base / "bin").mkdir(parents=True)
    (base / "lib").symlink_to(home.parent / "lib")
    changed = [f"home = {base / 'bin'}" if line.startswith("home = ") else line for line in lines]
    settings.write_text("\n".join(changed) + "\n")


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What a command printed on standard output. It must succeed."""
    variables = environment(folder)
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def play(python: str, folder: Path, headers: bool = True) -> None:
    """Install and run in ``folder``, and print what it took."""
    (folder / "source").mkdir()
    wheel = built_wheel(folder / "source")
    begin = time.monotonic()
    run([python, "-m", "venv", "env"], folder)
    if not headers:
        take_headers(folder)
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
    parser.add_argument("--without-headers", action="store_true", help="have no Python.h")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        play(chosen.python, Path(name), not chosen.without_headers)
