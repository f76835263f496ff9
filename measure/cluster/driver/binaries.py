"""The binaries of builds, and how many candidates still need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tilewright.measure.cluster.wire import Stored
from tilewright.measure.interfaces import Built


class Binaries:
    """Counts what is needed of each build, by its number, until nobody needs it any more."""

    def __init__(self) -> None:
        self._needed: Counter[int] = Counter()
        self._useless: list[int] = []

    def keep(self, build: int, count: int) -> None:
        """A build has made this many binaries that wait to be run."""
        self._needed[build] = count

    def let_go(self, built: Iterable[Built]) -> None:
        """Release binaries of ``built`` that are needed no more."""
        for build, count in Counter(b.build for b in built if isinstance(b, Stored)).items():
            self._needed[build] -= count
            if not self._needed[build]:
                del self._needed[build]
                self._useless.append(build)

    def discard(self, build: int) -> None:
        """Release all binaries of this build."""
        self._useless.append(build)

    def useless(self) -> list[int]:
        """Builds whose binaries nobody needs any more, each told once."""
        found, self._useless = self._useless, []
        return found
