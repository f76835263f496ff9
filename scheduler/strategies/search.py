"""The interface of a search strategy: ask and tell, without any I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tilewright.spaces.schedule import Schedule


@dataclass(frozen=True)
class Proposed:
    """A schedule that a search wants to have measured, and why.

    ``origin`` says where it is from: ``random`` (drawn, whatever a model thinks), ``immigrant``
    (drawn, and chosen by the model), ``starter`` (good for another shape), ``neighbour`` (one
    decision away from one of the best), ``child`` (crossed over from two good ones, and mutated)
    or ``enumerated``. ``mean`` is the score that the search predicts, and ``spread`` its standard
    deviation; both are relative, as of :class:`costmodel.interfaces.CostModel`: 1.0 is as fast
    as the best that the model knows, 0.5 takes twice as long. None where nothing predicts.
    """

    schedule: Schedule
    origin: str
    mean: float | None = None
    spread: float | None = None


class Search(Protocol):
    """Decides which schedules to try next.

    Pure: the same seed and the same results told give the same asks. Results may be told in any
    order, for schedules never asked for too (a resumed or a shared run). No schedule is asked for
    twice, nor one that was told.
    """

    def ask(self, count: int) -> list[Proposed]:
        """Return at most ``count`` new schedules; fewer, down to none, when the space is
        exhausted."""
        ...

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes: latency in seconds, None for a failure."""
        ...
