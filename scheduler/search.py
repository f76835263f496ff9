"""What a search strategy is: ask/tell, without any I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spaces.schedule import Schedule


class Search(Protocol):
    """Decides which schedules to try next.

    Pure: the same seed and the same results told give the same asks. Results may be told in any
    order, for schedules never asked for too (a resumed or a shared run). No schedule is asked for
    twice, nor one that was told.
    """

    def ask(self, count: int) -> list[Schedule]:
        """At most ``count`` new schedules; fewer, down to none, when the space is exhausted."""
        ...

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes: latency in seconds, None for a failure."""
        ...
