"""Six products tuned together on a made-up machine that is quick and never noisy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tests.scheduler.made_up_machine import Clock, MadeUpMachine
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Candidate, ErrorKind, Measurement, Status
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.suites.allocation import Allocation, by_gradient
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.testing.landscape import MACHINE, hills
from tilewright.scheduler.tuning.events import SuiteProgress, SuiteResult
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

SPACES = [hills(size) for size in (256, 320, 384, 448, 512, 576)]
HEAVY = (0, 3)  # what most of the time goes to


class Six(MadeUpMachine):
    """Times six products, each by its size; ``fails`` names those of which no kernel is right."""

    together = 16

    def __init__(
        self, fails: tuple[int, ...] = (), pause: float = 0.0, clock: Clock | None = None
    ) -> None:
        super().__init__(pause, clock=clock)
        self._fails = {SPACES[place].workload for place in fails}

    def _measure(self, candidate: Candidate) -> Measurement:
        if candidate.job.workload in self._fails:
            kind = ErrorKind.WRONG
            return Measurement(candidate.schedule, Status.ERROR, error_kind=kind, started_at=1.0)
        measured = super()._measure(candidate)
        if measured.score is None:
            return measured
        return replace(measured, score=measured.score * candidate.job.workload.flops / 2**28)


def blind(space: Space) -> Search:
    """The search that costs least, where any will do."""
    return RandomSearch(space, 0)


def suite(weights: tuple[float, ...] = (20.0, 1.0, 1.0, 20.0, 1.0, 1.0)) -> Suite:
    members = zip(SPACES, weights, strict=True)
    return Suite("made up", tuple(Member(space.workload, weight) for space, weight in members))


def tuned(
    database: Database,
    machine: MadeUpMachine,
    trials: int = 96,
    seconds: float = 600.0,
    patience: int | None = None,
    allocation: Allocation = by_gradient,
    on_progress: Callable[[SuiteProgress], None] | None = None,
    make_search: Callable[[Space], Search] | None = blind,
    **options,
) -> SuiteResult:
    made = Tuner(
        suite(),
        MACHINE,
        database,
        machine,
        allocation=allocation,
        spaces=SPACES,
        make_search=make_search,
        **options,
    )
    return made.run(trials, seconds, patience, on_progress)


def shares(machine: MadeUpMachine) -> Counter[str]:
    """Candidates of the search, by workload."""
    counts: Counter[str] = Counter()
    for job, (schedules, final) in zip(machine.jobs, machine.submitted, strict=True):
        if not final:
            counts[job.workload.key] += len(schedules)
    return counts


def finalists(machine: MadeUpMachine) -> list[int]:
    """How many there were of each product: in its first comparison."""
    counts: dict[Workload, int] = {}
    for job, (schedules, final) in zip(machine.jobs, machine.submitted, strict=True):
        if final:
            counts.setdefault(job.workload, len(schedules))
    return [counts[space.workload] for space in SPACES]
