"""Limits of a tuning run: trials, seconds, patience."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.schedule import LARGEST
from tilewright.spaces.validation.checks import positive, whole


class Effort(StrEnum):
    """Says how long to search, where nobody gives trials or seconds."""

    QUICK = "quick"
    DEFAULT = "default"
    THOROUGH = "thorough"


TRIALS = 128  # trials of one workload, by default
SECONDS = 60.0  # seconds for one workload, by default
EFFORTS = {
    Effort.QUICK: (32, 20.0),
    Effort.DEFAULT: (TRIALS, SECONDS),
    Effort.THOROUGH: (512, 300.0),
}
"""Trials and seconds of one workload."""
OVERTIME, OVERTIME_SHARE = 1.2, 0.06  # seconds, and share of the time, for a late comparison
SPARE = 1.0  # seconds after that in which its end is noted


@dataclass(frozen=True)
class Budget:
    """The largest number of trials and ``seconds`` of wall time.

    A workload ends early after ``patience`` trials without a gain. Raises :class:`InputError` for
    values that are not allowed.
    """

    trials: int
    seconds: float
    patience: int | None = None

    def __post_init__(self) -> None:
        self._set("trials", whole("trials", self.trials, 1, LARGEST))
        self._set("seconds", positive("seconds", self.seconds))
        if self.patience is not None:
            self._set("patience", whole("patience", self.patience, 1, LARGEST))

    def _set(self, name: str, number: float) -> None:
        """Convert to a number of Python's, which a run's configuration can hold."""
        object.__setattr__(self, name, number)

    @property
    def overtime(self) -> float:
        """Seconds by which a final comparison may end late if it had to wait for candidates."""
        return max(OVERTIME, OVERTIME_SHARE * self.seconds)

    def until(self, began: float) -> float:
        """Return the time (by ``time.monotonic``) until which a run that ``began`` then waits for
        its database."""
        return began + self.seconds + self.overtime + SPARE


def budget_for(
    count: int,
    effort: Effort | str,
    trials: int | None = None,
    seconds: float | None = None,
    patience: int | None = None,
) -> Budget:
    """Return the budget of ``count`` workloads: what is given, and else what the effort allows
    each."""
    most_trials, most_seconds = EFFORTS[as_effort(effort)]
    return Budget(
        most_trials * count if trials is None else trials,
        most_seconds * count if seconds is None else seconds,
        patience,
    )


def as_effort(given: Effort | str) -> Effort:
    """Return ``given`` itself, or the effort of that name; :class:`InputError` if there is none."""
    try:
        return Effort(given)
    except ValueError:
        known = ", ".join(Effort)
        raise InputError(f"effort={shown(given)} is unknown; allowed: {known}") from None
