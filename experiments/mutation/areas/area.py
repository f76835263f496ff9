"""An area: files, the tests that have to detect changes of them, and how many changes are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Area:
    """Files that are changed, ``draws`` times in all, and the tests of theirs; both as patterns
    below the root. Tests that ``unsteady`` selects (as pytest's ``-k`` does) are left out: they
    fail by themselves, on a machine that is busy with other things or as a user of a namespace.
    A test may take ``breath`` seconds more than a few times the usual; longer where a change has
    it compile the emulator."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    draws: int
    unsteady: str = ""
    breath: float = 20.0

    def files(self, root: Path) -> list[Path]:
        """Return the files to be changed, below ``root``, each once."""
        return list(_found(self.sources, root))

    def test_files(self, root: Path) -> list[Path]:
        """Return the tests to be run, below ``root``."""
        return list(_found(self.tests, root))


def _found(patterns: tuple[str, ...], root: Path) -> Iterator[Path]:
    files = (path for pattern in patterns for path in sorted(root.glob(pattern)))
    return iter(dict.fromkeys(path.relative_to(root) for path in files))
