"""Decide which candidates to try again after a machine failed, and which failures to record.

A batch whose measuring process died is divided until the culprit stands alone. A candidate that is
lost alone, and once more on a machine that was well in between, is itself to blame. Pure: any
executor, of threads or of a cluster, can follow :func:`resolve`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.measure.interfaces import Builder, Built
from tilewright.measure.records.measurement import (
    Candidate,
    ErrorKind,
    Job,
    Measurement,
    Result,
    Status,
)

LOSSES_ALONE = 2  # losses of a candidate alone, after which the failure is the schedule's own
STARTS = 3  # attempts at a batch on a machine that fails before any of it runs

_BLAME = {ErrorKind.WORKER_LOST: ErrorKind.CRASH}  # the schedule's name for a machine's failure

Run = Callable[[Job, Sequence[Built]], list[Measurement]]


@dataclass(frozen=True)
class Attempt:
    """Candidates of a job that run together; these very ones were lost ``losses`` times before.

    ``moved`` tells that one machine ran them, but not as its peers would have.
    """

    job: Job
    built: Sequence[Built]
    losses: int = 0
    moved: bool = False


def build(builder: Builder, candidates: Sequence[Candidate]) -> list[Built]:
    """Return the binaries in the order of ``candidates``; what a compiler's death took is built
    once more."""
    built = builder.build(candidates)
    lost = [i for i, b in enumerate(built) if b.error_kind is ErrorKind.COMPILER_LOST]
    if lost:
        for i, again in zip(lost, builder.build([candidates[i] for i in lost]), strict=True):
            built[i] = again
    return built


def run(runner: Run, job: Job, built: Sequence[Built]) -> Iterator[list[Result]]:
    """Yield the results of all of ``built`` as they become final, tried again as far as need be."""
    attempts = deque([Attempt(job, built)])
    while attempts:
        attempt = attempts.popleft()
        results, again = resolve(attempt, runner(attempt.job, attempt.built))
        attempts.extend(again)
        yield results


def resolve(
    attempt: Attempt, measurements: Sequence[Measurement], losses_alone: int = LOSSES_ALONE
) -> tuple[list[Result], list[Attempt]]:
    """Split an attempt's ``measurements`` into final results and attempts to make again, later.

    A candidate that was lost alone ``losses_alone`` times is to blame.
    """
    pairs = list(zip(attempt.built, measurements, strict=True))
    results = [Result(b.candidate, m) for b, m in pairs if not m.lost]
    lost = [(b, m) for b, m in pairs if m.lost]
    idle = [(b, m) for b, m in lost if m.error_kind is ErrorKind.DEVICE]  # none of them ran
    suspects = [(b, m) for b, m in lost if m.error_kind is not ErrorKind.DEVICE]
    again: list[Attempt] = []
    if idle and attempt.losses + 1 < STARTS:
        again.append(_again(attempt, idle))
    else:
        results += [Result(b.candidate, m) for b, m in idle]
    if len(attempt.built) == len(suspects) == 1 and attempt.losses + 1 >= losses_alone:
        results += [Result(b.candidate, _blamed(m)) for b, m in suspects]
    elif len(attempt.built) == len(suspects) == 1 or (suspects and _may_stay_together(attempt)):
        again.append(_again(attempt, suspects))
    else:
        middle = (len(suspects) + 1) // 2
        halves = (suspects[:middle], suspects[middle:])
        again += [Attempt(attempt.job, [b for b, _ in half]) for half in halves if half]
    return results, again


def _may_stay_together(attempt: Attempt) -> bool:
    """Finalists are compared with each other, so they are divided one loss later."""
    return attempt.job.final and not attempt.losses


def _again(attempt: Attempt, lost: Sequence[tuple[Built, Measurement]]) -> Attempt:
    return Attempt(attempt.job, [b for b, _ in lost], attempt.losses + 1)


def _blamed(lost: Measurement) -> Measurement:
    assert lost.error_kind is not None
    kind = _BLAME.get(lost.error_kind, lost.error_kind)
    return replace(lost, status=Status.ERROR, error_kind=kind)
