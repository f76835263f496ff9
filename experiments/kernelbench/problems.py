"""The problems of KernelBench, downloaded by git at one commit; none of them is kept here."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/ScalingIntelligence/KernelBench"
COMMIT = "423217d9fda91e0c2d67e4a43bf62f96f6d104f1"
FILTERED = Path(__file__).with_name("filtered.json")


@dataclass(frozen=True)
class Problem:
    """A file with a ``Model``, ``get_inputs`` and ``get_init_inputs``. ``kept`` says that it passes
    METR's filter."""

    level: int
    number: int
    path: Path
    kept: bool

    @property
    def name(self) -> str:
        return f"{self.level}/{self.path.stem}"

    def load(self) -> Any:
        """Execute the file and return its module."""
        spec = importlib.util.spec_from_file_location(
            f"problem_{self.level}_{self.number}", self.path
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def fetch(folder: Path, repository: str = REPOSITORY, commit: str = COMMIT) -> Path:
    """Download a commit into ``folder`` if it is not there, and return the checkout."""
    if not (folder / ".git").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _git(folder, "init", "--quiet")
        _git(folder, "fetch", "--quiet", "--depth", "1", repository, commit)
        _git(folder, "checkout", "--quiet", commit)
    if _git(folder, "rev-parse", "HEAD") != commit:
        raise SystemExit(f"{folder} is at another commit than {commit}")
    return folder


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(("git", *words), cwd=folder, check=True, text=True, capture_output=True)
    return done.stdout.strip()


def problems(folder: Path, levels: Sequence[int]) -> Iterator[Problem]:
    """Yield the problems of some levels, by number."""
    removed = json.loads(FILTERED.read_text())["removed"]
    for level in levels:
        paths = (folder / "KernelBench" / f"level{level}").glob("*.py")
        for number, path in sorted((int(path.name.partition("_")[0]), path) for path in paths):
            yield Problem(level, number, path, number not in removed[str(level)])
