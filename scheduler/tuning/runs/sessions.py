"""Jobs as the database knows them: which run, which ended or were lost, and what those left undone.

A job's runs share the name of its session, one run for each workload and target; a run by itself is
a session under its own key. What is left of a run follows from its configuration and what is
recorded of it. The command that was typed is shown to people, and never run again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.suites.objective import Objective, as_objective
from tilewright.scheduler.suites.suite import Member, Suite, section_weights
from tilewright.scheduler.tuning.budget import Budget
from tilewright.scheduler.tuning.runs.process import is_gone
from tilewright.scheduler.tuning.runs.run_log import HEARTBEAT
from tilewright.scheduler.tuning.states import Stop
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.validation.checks import positive, whole

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.records.run import Run

LOST_AFTER = 6 * HEARTBEAT
"""Seconds without a sign of life after which a job is taken for lost."""
AHEAD = HEARTBEAT
"""Seconds by which clocks of other machines may be ahead. A later sign of life is none: somebody
set a clock since."""

DONE = {Stop.TRIALS, Stop.SECONDS, Stop.PATIENCE, Stop.EXHAUSTED}
"""Reasons of runs that came to their end."""


class SessionState(StrEnum):
    """The state of a job: running, lost or ended."""

    RUNNING = "running"
    LOST = "lost"  # it did not end, and gives no sign of life
    ENDED = "ended"


@dataclass(frozen=True)
class Session:
    """A job: its runs, of each workload and target the latest. Times are Unix times."""

    name: str
    runs: tuple[Run, ...]

    @property
    def started_at(self) -> float:
        """Say when the first run began."""
        return min(run.started_at for run in self.runs)

    @property
    def heartbeat(self) -> float:
        """Say when a run was last known to live."""
        return max(run.heartbeat for run in self.runs)

    @property
    def lasted(self) -> float:
        """Seconds between these."""
        return max(0.0, self.heartbeat - self.started_at)

    @property
    def reasons(self) -> str:
        """Say why the runs that ended did."""
        return ", ".join(dict.fromkeys(run.reason for run in self.runs if run.reason))

    def state(self, now: float) -> SessionState:
        """Return the state of the session at the time ``now``."""
        open = [run for run in self.runs if run.ended_at is None]
        if not open:
            return SessionState.ENDED
        alive = any(_is_alive(run, now) for run in open)
        return SessionState.RUNNING if alive else SessionState.LOST

    def to_json(self, now: float) -> dict[str, Any]:
        """Return the job and its state by the time ``now`` as a JSON object."""
        return {
            "session": self.name,
            "state": str(self.state(now)),
            "reasons": self.reasons,
            "runs": [run.to_json() for run in self.runs],
        }


@dataclass(frozen=True)
class UnfinishedRun:
    """Runs that did not come to their end: one, or those of a suite, with the remaining budget that
    they share."""

    runs: tuple[Run, ...]
    budget: Budget

    @property
    def run(self) -> Run:
        """The first of them."""
        return self.runs[0]


def sessions(database: Database) -> list[Session]:
    """Return all sessions of a database, the oldest first."""
    return sessions_of(database.runs())


def recent_sessions(database: Database, count: int) -> list[Session]:
    """Return those of the last ``count`` runs, and those that may be alive; the oldest first."""
    return sessions_of(database.recent_runs(count, time.time() - LOST_AFTER))


def sessions_of(runs: Iterable[Run]) -> list[Session]:
    """Return the sessions that runs are of. Notes are none."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        if not run.is_note:
            found.setdefault(run.session or run.key, []).append(run)
    return [_session(name, members) for name, members in found.items()]


def unfinished_runs(database: Database, name: str) -> list[UnfinishedRun]:
    """Return the unfinished runs of the session called ``name``.

    Raises :class:`InputError` if there is no such session, it still runs or is finished, or its
    budget is spent.
    """
    runs = list(database.runs(name)) if name else []
    if not runs:
        raise InputError(f"there is no session {shown(name)}; see tilewright list --sessions")
    session, now = _session(name, runs), time.time()
    if session.state(now) is SessionState.RUNNING:
        ago = f"{max(0.0, now - session.heartbeat):.0f} s ago"
        raise InputError(
            f"session {name} is running: its last heartbeat was {ago}; "
            f"without one for {LOST_AFTER:g} s it is lost, and can be resumed"
        )
    undone = [run for run in session.runs if run.reason not in DONE]
    if not undone:
        raise InputError(f"session {name} has come to its end ({session.reasons})")
    budgets = [
        (runs, _budget_left(database, _spenders(session, runs), now)) for runs in _sharing(undone)
    ]
    found = [UnfinishedRun(runs, budget) for runs, budget in budgets if budget is not None]
    if not found:
        raise InputError(f"session {name} has used up its seconds")
    return found


def suite_of(unfinished: UnfinishedRun) -> tuple[Suite, Objective] | None:
    """Return the suite that runs are of, as they noted it, and what it was tuned for; None for one
    that is of none. :class:`InputError` if they are malformed."""
    options = unfinished.run.configuration
    if "suite" not in options:
        return None
    try:
        members = tuple(map(_member, unfinished.runs))
        return Suite(str(options["suite"]), members), as_objective(str(options.get("objective")))
    except InputError as error:
        raise InputError(f"run {unfinished.run.key} cannot be resumed: {error}") from None


def target_here(run: Run) -> Target:
    """Return the target of a run, which must be this machine; :class:`InputError` if it is not."""
    target = run.target
    here = detect_target(target.kind, getattr(target, "threads", None))
    if here.fingerprint != target.fingerprint:
        raise InputError(
            f"{run.workload} was tuned on {target.summary}, and this is {here.summary}: resume it "
            "where it was, or tune it anew"
        )
    return here


def _is_alive(run: Run, now: float) -> bool:
    """Return True if an open run may continue: it was alive lately, and its process may still
    exist."""
    return -AHEAD <= now - run.heartbeat < LOST_AFTER and not is_gone(run.versions.get("process"))


def _session(name: str, runs: Iterable[Run]) -> Session:
    latest = {(run.workload.key, run.target.fingerprint): run for run in runs}
    return Session(name, tuple(latest.values()))


def _member(run: Run) -> Member:
    """Return the member of a suite that a run tuned; :class:`InputError` if it is malformed."""
    told = run.configuration
    name, sections = str(told.get("name", "")), told.get("sections")
    if isinstance(sections, Mapping):
        return Member.of_sections(run.workload, section_weights(sections), name)
    return Member(run.workload, positive("weight", told.get("weight")), name)


def _sharing(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Return each run by itself, but those of a suite on one target together."""
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        shared = "suite" in run.configuration
        key = ("suite", run.target.fingerprint) if shared else ("run", run.key)
        found.setdefault(key, []).append(run)
    return [tuple(members) for members in found.values()]


def _spenders(session: Session, runs: Sequence[Run]) -> list[Run]:
    """Return the runs that used the budget of ``runs``: of a suite, also those that stopped alone.
    Each time it was resumed, what was left was another budget."""
    budget = _recorded_budget(runs[0])
    others = [run for run in session.runs if "suite" in runs[0].configuration and run not in runs]
    return [*runs, *(run for run in others if _recorded_budget(run) == budget)]


def _recorded_budget(run: Run) -> tuple[object, ...]:
    options = run.configuration
    asked = [options.get(name) for name in ("suite", "trials", "seconds")]
    return run.target.fingerprint, *asked


def _budget_left(database: Database, runs: Sequence[Run], now: float) -> Budget | None:
    """Return None if less than a second is left; one trial at least, for the last comparison is
    undone."""
    options: dict[str, Any] = {"trials": None, "seconds": None, **runs[0].configuration}
    try:
        whole("seed", runs[0].seed, 0)
        budget = Budget(options["trials"], options["seconds"], options.get("patience"))
    except InputError as error:
        raise InputError(f"run {runs[0].key} cannot be resumed: {error}") from None
    trials = budget.trials - sum(database.trials_of_run(run.key) for run in runs)
    heartbeat = min(now, max(run.heartbeat for run in runs))
    lasted = heartbeat - min(run.started_at for run in runs)
    seconds = budget.seconds - max(0.0, lasted)
    return replace(budget, trials=max(1, trials), seconds=seconds) if seconds >= 1 else None
