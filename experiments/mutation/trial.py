"""One trial: the tests of an area on a copy of the tree with one change in it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# A changed program may signal any process, so it sees none but its own; all end with the first,
# a shell, which takes leave of orphans as an init process does.
ALONE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")
WAITING = ("sh", "-c", '"$@"; exit $?', "sh")
OPTIONS = ("-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:randomly")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.M)
BREATH = 10.0  # seconds allowed beyond several times of what the tests take unchanged
TIMES = 4


@dataclass(frozen=True)
class Outcome:
    """How tests ended: ``passed``, ``failed`` or ``timeout``; the first that failed, if any;
    and the seconds they took."""

    verdict: str
    test: str
    seconds: float


@contextmanager
def copied(root: Path, cache: Path) -> Iterator[Path]:
    """A copy of the files that git knows below ``root``, with a copy of ``cache`` in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        copy = Path(name, "tree")
        for line in listed.stdout.decode().split("\0"):
            if line and (root / line).is_file():
                (copy / line).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / line, copy / line)
        shutil.copytree(cache, Path(name, "cache"), dirs_exist_ok=True)
        yield copy


def run_tests(tree: Path, tests: Sequence[Path], limit: float, unsteady: str = "") -> Outcome:
    """Run the tests in ``tree``, a copy by :func:`copied`, but those that ``unsteady`` selects, for
    at most ``limit`` seconds."""
    cache = tree.parent / "cache"
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(cache),
    }
    chosen = ["-k", f"not ({unsteady})"] if unsteady else []
    pytest = [sys.executable, "-m", "pytest", *OPTIONS, *chosen, *map(str, tests)]
    command = [*ALONE, *WAITING, *pytest]
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _outcome(status, output, time.monotonic() - start)


def limit_for(seconds: float) -> float:
    """Seconds that tests of a changed tree may take, by those of the unchanged one."""
    return BREATH + TIMES * seconds


def _outcome(status: int | None, output: IO[bytes], seconds: float) -> Outcome:
    if status is None:
        return Outcome("timeout", "", seconds)
    output.seek(0)
    text = output.read().decode(errors="replace")
    failed = FAILED.search(text)
    name = failed[1] if failed else text.strip().splitlines()[-1:][0] if text.strip() else ""
    return Outcome("passed" if status == 0 else "failed", name, seconds)
