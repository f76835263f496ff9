"""Records the tests of an area on unchanged code: how long each takes, and what it executes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments.mutation.areas import Area
from experiments.mutation.trial import copied, run_tests
from experiments.mutation.watching import Survey

PACKAGES = ("spaces", "measure", "costmodel", "scheduler")
MOST_SLOWDOWN = 4  # times as long as usual that a test may take, beside its breath
START = 60.0  # seconds before the first test
LONGEST = 600.0  # seconds, of one test when nothing is changed
EMULATOR = "from tilewright.measure.cuda.emulator.toolchain import process; process()"
"""Builds what a busy machine may take longer to build than a test has."""


@dataclass(frozen=True)
class Usual:
    """Seconds of each test; the tests that execute each line of a file, where ``""`` stands for
    its import; and a folder with the cache that the tests leave."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]
    cache: Path
    breath: float

    def tests_of(self, path: Path, line: int) -> list[str]:
        """Return the tests that execute a line, or the nearest executed one above it; all, of a
        line that an import executes, and of a file that is not Python's."""
        lines = self.lines.get(str(path), {})
        above = [number for number in map(int, lines) if number <= line]
        names = lines[str(max(above))] if above else [""]
        return self.ordered(self.seconds if "" in names else names)

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Return the files that take least time first, and in each the tests that do."""
        files: dict[str, float] = defaultdict(float)
        names = list(names)
        for name in names:
            files[file_of(name)] += self.seconds[name]
        return sorted(names, key=lambda n: (files[file_of(n)], file_of(n), self.seconds[n]))

    def limit(self, test: str) -> float:
        """Return the seconds that a test of a changed tree may take."""
        return self.breath + MOST_SLOWDOWN * self.seconds.get(test, self.breath) if test else START


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def usual(area: Area, root: Path, kept: Path) -> Usual:
    """Run the tests of ``area``, or read the record below ``kept`` if no package or test changed.
    RuntimeError if a test fails."""
    tests = area.test_files(root)
    folder = kept / _digest(root, [*PACKAGES, *map(str, tests)])
    if not (folder / "survey.json").exists():
        _survey(area, root, folder)
    survey = json.loads((folder / "survey.json").read_text())
    return Usual(survey["seconds"], survey["lines"], folder / "cache", area.breath)


def _survey(area: Area, root: Path, folder: Path) -> None:
    begun = folder / "begun"
    begun.mkdir(parents=True, exist_ok=True)
    files = [path for path in area.files(root) if path.suffix == ".py"]
    tests = [str(path) for path in area.test_files(root)]
    if any("/cuda/" in test for test in tests):
        build = [sys.executable, "-c", EMULATOR]
        environment = os.environ | {"XDG_CACHE_HOME": str(begun)}
        subprocess.run(build, cwd=root, env=environment, check=True)
    with copied(root, begun) as tree:
        out = tree.parent / "survey.json"
        survey = Survey(tree, files, out)
        outcome = run_tests(tree, tests, lambda test: LONGEST, [survey], area.unsteady)
        if outcome.verdict != "passed":
            reason = (tree.parent / "failures").read_text()
            raise RuntimeError(f"unchanged, {outcome.test} {outcome.verdict}: {reason}")
        shutil.move(tree.parent / "cache", folder / "cache")
        shutil.move(out, folder / "survey.json")


def _digest(root: Path, paths: list[str]) -> str:
    """Return a name for the text of files and folders below ``root``."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *paths],
        cwd=root,
        capture_output=True,
        check=True,
    )
    digest = hashlib.sha256(listed.stdout)
    for name in listed.stdout.decode().split("\0"):
        if name and (root / name).is_file():
            digest.update((root / name).read_bytes())
    return digest.hexdigest()[:12]
