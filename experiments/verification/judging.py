"""Groups of schedules are built and judged by several workers at a time, on one GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack

from experiments.verification.plan import Group
from tilewright.measure import retrying
from tilewright.measure.interfaces import Builder, Built, Runner
from tilewright.measure.records.measurement import Candidate, Job, Measurement, new_job_id
from tilewright.scheduler.verification import Verdict

Take = Callable[[Group, Sequence[Verdict]], None]


def judge(
    groups: Iterator[Group],
    builder: Builder,
    runners: Sequence[Runner],
    seconds: float,
    take: Take,
) -> None:
    """Judge groups for so many seconds, one at a time on each of the runners, and ``take`` the
    verdicts of each. What is not with a runner by then, or on Ctrl-C, is left; the builder is
    closed."""
    asking, over = threading.Lock(), threading.Event()

    def work(runner: Runner, measuring: threading.Lock) -> None:
        while not over.is_set():
            with asking:
                group = next(groups, None)
            if group is None:
                return
            built = _built(builder, group)
            with measuring:
                if over.is_set():  # the compiler was stopped, or what it built is gone
                    return
                verdicts = [_verdict(group, found) for found in _measured(runner, built)]
            with asking:
                take(group, verdicts)

    with ThreadPoolExecutor(len(runners)) as threads:
        measuring = [threading.Lock() for _ in runners]
        working = [threads.submit(work, *each) for each in zip(runners, measuring, strict=True)]
        try:
            wait(working, seconds)
        finally:
            over.set()
            with ExitStack() as measured:
                for lock in measuring:  # what runs reads files that go with the builder
                    measured.enter_context(lock)
                builder.close()
        for each in working:
            each.result()


def _built(builder: Builder, group: Group) -> list[Built]:
    space = group.space
    job = Job(new_job_id(), space.workload, space.target, thorough=True)
    candidates = [Candidate(job, s, space.lower(s)) for s in group.schedules]
    return retrying.build(builder, candidates)


def _measured(runner: Runner, built: Sequence[Built]) -> Iterator[Measurement]:
    """Measure the candidates that have a binary, and say why the others have none."""
    yield from (b.failure() for b in built if b.binary is None)
    ready = [b for b in built if b.binary is not None]
    if ready:
        for results in retrying.run(runner.run, ready[0].candidate.job, ready):
            yield from (result.measurement for result in results)


def _verdict(group: Group, found: Measurement) -> Verdict:
    verdict = Verdict(found.schedule, found.error_kind, found.error_text)
    if verdict.outcome == "wrong":
        print(f"WRONG {group.case}: {verdict.schedule}: {verdict.error_text}", flush=True)
    return verdict
