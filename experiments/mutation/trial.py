"""One trial: tests run on a copy of the tree with one change in it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from experiments.mutation.apart import fork_apart
from experiments.mutation.watching import ReportingPlugin

HEAVY = ("hypothesis", "scipy.stats", "sqlalchemy.orm", "alembic.command", "xgboost", "torch")
OPTIONS = ("-q", "--tb=short", "-p", "no:cacheprovider")


@dataclass(frozen=True)
class Outcome:
    """The end of tests: ``passed``, ``failed`` or ``timeout``; the test that ran last; and the
    seconds they took."""

    verdict: str
    test: str
    seconds: float


def get_ready() -> None:
    """Import what many tests import, so that no trial has to. Hypothesis draws the same examples
    each time, and does not look for the simplest that fails."""
    for name in HEAVY:
        import_module(name)
    from hypothesis import Phase, settings

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("trial", derandomize=True, deadline=None, phases=phases)
    settings.load_profile("trial")


@contextmanager
def copied(root: Path, cache: Path) -> Iterator[Path]:
    """Make a copy of the files that git knows below ``root``, with a copy of ``cache`` beside
    it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o711)  # servers of tests run as users without rights
        copy = Path(name, "tree")
        for line in listed.stdout.decode().split("\0"):
            if line and (root / line).is_file():
                (copy / line).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / line, copy / line)
        shutil.copytree(cache, Path(name, "cache"))
        Path(name, "tmp").mkdir()
        yield copy


def run_tests(
    tree: Path,
    files: Sequence[str],
    limit: Callable[[str], float],
    plugins: Sequence[object] = (),
    unsteady: str = "",
) -> Outcome:
    """Run the tests of ``files`` in ``tree``, a copy by :func:`copied`, but those that ``unsteady``
    selects, until one fails or takes more than its ``limit`` (seconds by test; ``""`` is the time
    before the first). The reasons of failures are in ``tree/../failures``."""
    said, saying = os.pipe()
    skip = ["-k", f"not ({unsteady})"] if unsteady else []
    arguments = [*OPTIONS, *skip, *files]
    reporting = ReportingPlugin(saying, tree.parent / "failures")
    child = fork_apart(lambda: _pytest(tree, arguments, [*plugins, reporting]))
    os.close(saying)
    try:
        return _followed(child, said, limit)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while os.read(said, 65536):  # ends when all that came of the child has ended
            pass
        os.close(said)


def _pytest(tree: Path, arguments: list[str], plugins: list[object]) -> int:
    ours = {"", os.getcwd(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in ours)]
    sys.dont_write_bytecode = True
    os.environ |= {
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(tree.parent / "cache"),
        "TMPDIR": str(tree.parent / "tmp"),
    }
    tempfile.tempdir = None
    os.chdir(tree)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    return int(pytest.main(arguments, plugins))


def _followed(child: int, said: int, limit: Callable[[str], float]) -> Outcome:
    start = since = time.monotonic()
    running, heard = "", b""
    while True:
        if select.select([said], [], [], 0.1)[0]:
            heard += os.read(said, 65536)
            *lines, heard = heard.split(b"\n")
            for line in map(bytes.decode, lines):
                if line.startswith("-"):
                    return Outcome("failed", line[1:], time.monotonic() - start)
                running, since = line[1:], time.monotonic()
        now = time.monotonic()
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended:
            return Outcome("failed" if ended.si_status else "passed", running, now - start)
        if now - since > limit(running):
            return Outcome("timeout", running, now - start)
