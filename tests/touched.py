"""The test files that a change touches, for ``make quick``: ``python -m tests.touched [BASE]``.

They are those that changed since the branch left ``BASE`` or are not committed yet, those that
import a changed module, themselves or by helpers of tests, and those in the folder that mirrors a
changed module's. A module that very many tests import touches that folder alone. Tests of ``APART``
are left to ``make test``: they emulate GPUs, start clusters and run whole programs. So are those
that would begin too late: the nearest to the change come first (``--within`` of tests/conftest.py).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
MOST = 25
"""Test files that a module may touch by being imported."""
APART = (
    "tests/docs/",
    "tests/examples/",
    "tests/fuzz/",
    "tests/measure/cluster/",
    "tests/measure/cuda/",
    "tests/release/",
    "tests/scheduler/cli/",
    "tests/scheduler/faults/",
    "tests/test_readme.py",
)

Imports = Mapping[str, frozenset[str]]
"""The paths that each file below ``tests`` may import, as far as they are of this repository."""


def changed(base: str, root: Path = ROOT) -> list[str]:
    """List the files that are not as they were where this branch left ``base``."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, check=True, stdout=subprocess.PIPE)
        return done.stdout.decode().splitlines()

    [fork] = git("merge-base", base, "HEAD")
    untracked = git("ls-files", "--others", "--exclude-standard")
    return [*git("diff", "--name-only", fork), *untracked]


def imports() -> Imports:
    """Read which paths each file below ``tests`` may import."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): frozenset(_imported(path)) for path in files}


def touched(paths: Iterable[str], known: Imports) -> list[str]:
    """The test files that a change of ``paths`` touches: those that changed, those that mirror what
    changed, those that import it."""
    nearest: list[set[str]] = [set(), set(), set()]
    for path in paths:
        users = _users(path, known)
        for near, found in zip(
            nearest,
            ({path}, _beside(path, known), users if len(users) <= MOST else set()),
            strict=True,
        ):
            near |= found
    ordered = dict.fromkeys(path for near in nearest for path in sorted(near))
    return [path for path in ordered if path in known and _is_quick(path)]


def _is_quick(path: str) -> bool:
    return PurePosixPath(path).name.startswith("test_") and not path.startswith(APART)


def _users(path: str, known: Imports) -> set[str]:
    """The quick test files that import a path, themselves or by what they import of tests."""
    found, new = set[str](), {path}
    while new:
        new = {file for file, imported in known.items() if imported & new} - found
        found |= new
    return {file for file in found if _is_quick(file)}


def _beside(path: str, known: Imports) -> set[str]:
    """The test files in the innermost folder that mirrors the path's, or one around it."""
    if path.startswith("tests/"):
        return set()
    for folder in (PurePosixPath("tests") / path).parents:
        if found := {file for file in known if PurePosixPath(file).parent == folder}:
            return found
    return set()


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            base = name.removeprefix("tilewright.").replace(".", "/")
            yield from (f"{base}.py", f"{base}/__init__.py")


if __name__ == "__main__":
    print(*touched(changed(*sys.argv[1:2] or ["main"]), imports()))
