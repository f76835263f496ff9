"""The operators of a model on a GPU: searched side by side, then each timed in turns with torch.

Processes choose and compile schedules while this one judges and times what came: first those that
the roofline likes best, then neighbours of the fastest, operator by operator in turn.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Protocol, TypeVar

import torch

from experiments.gpu_matmul.timing import TooBusyError
from experiments.models.choosing import NONE, build
from experiments.models.known import Known
from experiments.models.summary import ALONE
from experiments.operators.exploring import finals
from experiments.operators.exploring.explore import Explorer
from experiments.operators.exploring.tensors import inputs_like
from experiments.rivals import compiled, usable
from tilewright.measure.interfaces import Built
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.registry import space_for

FIRST, FURTHER, PARENTS = 12, 8, 3
"""Schedules of an operator that are tried at first, and at each further turn; of how many fast ones
those are neighbours."""
SLACK = 5e-3
"""Allowed error of sums of terms rounded to 16 bits, as a share of the outputs' mean."""
LEAD = 48
"""Flushes before a round: several calls of Python each, on a host that compiles."""
HEAT = 0.05
"""Seconds of work before an operator is timed; the one before it has warmed the device."""
SETTLING = 1.3
"""Seconds that an operator takes after its search: its compiled rival, and timing."""


class Searched(Protocol):
    """One operator whose schedules are asked for, judged and asked for again."""

    turns: int

    def ask(self, process_pool: Executor) -> Future[list[Built]]:
        """Return the next schedules, on their way."""

    def tell(self, found: Sequence[Built]) -> None:
        """Judge and time what is new."""


S = TypeVar("S", bound=Searched)


class Contest:
    """One operator, what was found of it, and its rivals."""

    def __init__(self, operator: Any, target: CudaTarget, known: Known = NONE) -> None:
        self.operator, self.target, self.known = operator, target, known
        self.workload = operator.workload
        self.tensors = inputs_like(self.workload)
        wide = {n: t.double() if t.is_floating_point() else t for n, t in self.tensors.items()}
        exact = operator.rivals["eager"](**wide)
        space = space_for(self.workload, target)
        self.explorer = Explorer(space, self.tensors, [exact], slack=SLACK)
        self.turns = 0

    def ask(self, process_pool: Executor) -> Future[list[Built]]:
        """Return the next schedules, on their way; after the first ones, the compiled rival is,
        too."""
        parents, count = self.explorer.best[:PARENTS], FURTHER if self.turns else FIRST
        known, self.known = self.known, NONE
        self.turns += 1
        name = self.operator.name
        given = (self.workload, self.target, parents, count, self.turns, known, name)
        building = process_pool.submit(build, *given)
        if self.turns == 1:
            process_pool.submit(warm, self.operator)
        return building

    def tell(self, found: Sequence[Built]) -> None:
        """Judge and time what is new."""
        for built in found:
            if built.candidate.schedule not in self.explorer.calls:
                self.explorer.judge(built)

    def row(self) -> dict[str, Any]:
        """The row of the results, after all were timed in turns."""
        eager = self.operator.rivals["eager"]
        calls, unavailable = usable({"compiled": lambda: compiled(eager, self.tensors)})
        for name, rival in self.operator.rivals.items():
            calls[name] = partial(rival, **self.tensors)
        if alone := self.operator.alone(self.tensors):
            calls[ALONE] = alone
        row: dict[str, Any] = {"turns": self.turns}
        row |= {"unavailable": unavailable} if unavailable else {}
        timing = {"rounds": 30, "seconds": 0.5, "lead": LEAD, "heat": HEAT}
        return row | finals.compare(self.explorer, calls, **timing)


def compare(
    operators: Mapping[Any, int],
    target: CudaTarget,
    process_pool: Executor,
    end: float,
    known: Known,
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Return each operator, those first that occur most often, and its row of the results, searched
    until it is time to settle them by ``end`` (of ``time.monotonic``); what is ``known`` is tried
    first. One that cannot be timed, since the host is too busy, has no row."""
    ordered = sorted(operators, key=lambda operator: -operators[operator])
    contests: list[Contest] = []

    def made() -> Iterator[Contest]:
        for operator in ordered:
            contests.append(Contest(operator, target, known))
            yield contests[-1]

    search(made(), process_pool, end - SETTLING * len(ordered))
    torch.backends.cudnn.benchmark = True
    with torch.no_grad():
        for contest in contests:
            try:
                row = contest.row()
            except TooBusyError as error:
                print(f"{contest.operator.name}: {error}", flush=True)
            else:
                yield contest.operator, row


def search(contests: Iterable[S], process_pool: Executor, end: float) -> None:
    """Judge the first schedules of each, then further ones in turn until ``end``."""
    waiting = deque((contest, contest.ask(process_pool)) for contest in contests)
    while waiting:
        contest, future = waiting.popleft()
        if contest.turns > 1 and time.monotonic() > end:
            future.cancel()
            continue
        contest.tell(future.result())
        if time.monotonic() < end:
            waiting.append((contest, contest.ask(process_pool)))


def warm(operator: Any) -> str:
    """Fill the caches of ``torch.compile`` for an operator; its name."""
    with torch.no_grad():
        compiled(operator.rivals["eager"], inputs_like(operator.workload))()
    return str(operator.name)
