"""Contract of executors. Inherit, and say how it and its candidates are made."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import (
    Candidate,
    ErrorKind,
    Job,
    Measurement,
    Result,
    Status,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload


def collect(
    executor: Executor, job: Job | None = None, patience: float = 120.0
) -> list[Measurement]:
    """Collect all pending results, of one job or of all."""
    known: list[Result] = []
    deadline = time.monotonic() + patience
    while executor.pending(job) and time.monotonic() < deadline:
        known += executor.results(1.0, *([job] if job else []))
    return [result.measurement for result in known]


def submit(executor: Executor, *candidates: Candidate, **options) -> Job:
    """Send a batch for the job of its first candidate, with these options; that job."""
    job = replace(candidates[0].job, **options)
    executor.submit(job, candidates)
    return job


class ExecutorContract(ABC):
    """Tests of ``measure.interfaces.Executor``."""

    @abstractmethod
    def make(self) -> Executor:
        """Return a new executor."""

    @abstractmethod
    def good(self, name: str) -> Candidate:
        """Return a right kernel; another name, another kernel and schedule."""

    @abstractmethod
    def other(self, name: str) -> Candidate:
        """Return a right kernel of another workload."""

    @abstractmethod
    def crashing(self, name: str) -> Candidate:
        """Return a kernel that kills its process or poisons its device."""

    @abstractmethod
    def broken(self, name: str) -> Candidate:
        """Return a candidate that does not build."""

    @abstractmethod
    def slow(self, name: str) -> Candidate:
        """Return a right kernel, at least ten times as slow as ``good`` and over a millisecond."""

    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        executor = self.make()
        yield executor
        executor.close()

    def test_without_candidates_there_are_no_results(self, executor) -> None:
        assert executor.pending() == 0
        assert executor.results() == []
        executor.submit(self.good("good").job, [])
        assert executor.results() == []

    def test_it_says_how_much_keeps_it_busy(self, executor) -> None:
        assert executor.batch >= executor.devices >= 1
        assert executor.ahead >= 1

    def test_it_lacks_nothing_where_it_has_measured(self, executor) -> None:
        job = submit(executor, self.good("a"))
        assert [m.ok for m in collect(executor)] == [True]
        assert executor.lacking(job.target) == ""

    def test_each_candidate_gives_one_result(self, executor) -> None:
        batches = [[self.good(f"good{i}_{j}") for j in range(3)] for i in range(3)]
        for batch in batches:
            submit(executor, *batch)
        assert executor.pending() == 9
        results = collect(executor)
        assert executor.pending() == 0
        assert all(m.ok for m in results)
        wanted = {c.schedule for batch in batches for c in batch}
        assert len(results) == len(wanted)
        assert {m.schedule for m in results} == wanted

    def test_failures_are_results(self, executor) -> None:
        submit(executor, self.broken("a"), self.crashing("b"), self.good("c"))
        results = {str(m.schedule).rpartition("=")[2]: m for m in collect(executor)}
        statuses = [results[name].status for name in "abc"]
        assert statuses == [Status.ERROR, Status.ERROR, Status.OK]
        assert results["a"].error_kind is ErrorKind.COMPILE
        assert results["b"].error_kind is ErrorKind.CRASH
        assert results["a"].error_text
        assert results["b"].error_text

    def test_what_cannot_be_verified_is_refused_before_it_is_sent(self, executor) -> None:
        work = workload("y[r] = x[r] - x[r]", r=16)
        job = replace(self.good("a").job, id="nothing to see", workload=work)
        with pytest.raises(InputError, match="cannot be verified"):
            executor.submit(job, [])
        assert executor.pending() == 0

    def test_waiting_ends_with_the_timeout(self, executor) -> None:
        submit(executor, self.good("good"))
        results = executor.results(timeout=0.0)
        assert executor.pending() == 1 - len(results)
        collect(executor)

    def test_a_result_names_its_candidate(self, executor) -> None:
        candidates = [self.good("a"), self.broken("b"), self.good("c")]
        job = submit(executor, *candidates)
        results: list[Result] = []
        while executor.pending(job):
            results += executor.results(1.0, job)
        assert len(results) == 3
        assert all(any(r.candidate is c for c in candidates) for r in results)
        assert all(r.measurement.schedule == r.candidate.schedule for r in results)

    def test_what_nobody_asks_for_any_more_gives_no_result(self, executor) -> None:
        made = [self.good("a"), self.slow("b")]
        unwanted = replace(made[0].job, id="unwanted")
        executor.submit(unwanted, [replace(candidate, job=unwanted) for candidate in made])
        executor.drop(unwanted)
        assert executor.pending() == 0
        wanted = self.good("c")
        submit(executor, wanted)
        assert [m.schedule for m in collect(executor)] == [wanted.schedule]
        assert executor.results(0.0) == []

    def test_jobs_share_it_and_each_gets_its_own_results(self, executor) -> None:
        """Submit jobs of different workloads from two threads, interleaved."""
        makers = {"one": self.good, "another": self.other}
        wanted: dict[str, set] = {}
        got: dict[str, list[Result]] = {"one": [], "another": []}

        def tune(id: str) -> None:
            job = replace(makers[id]("x").job, id=id)
            for i in range(3):
                made = [replace(makers[id](f"{id}{i}_{j}"), job=job) for j in range(4)]
                wanted.setdefault(id, set()).update(c.schedule for c in made)
                executor.submit(job, made)
                while executor.pending(job) > 2:
                    got[id] += executor.results(1.0, job)
            while executor.pending(job):
                got[id] += executor.results(1.0, job)

        threads = [threading.Thread(target=tune, args=(id,)) for id in makers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert executor.pending() == 0
        for id, results in got.items():
            assert {r.candidate.job.id for r in results} == {id}
            assert len(results) == 12
            assert {r.measurement.schedule for r in results} == wanted[id]
            assert all(r.measurement.ok for r in results)

    def test_results_of_several_jobs_are_asked_for_together_and_no_others_come(self, executor):
        jobs = [replace(self.good("a").job, id=f"of several {i}") for i in range(3)]
        for job in jobs:
            executor.submit(job, [replace(self.good(f"{job.id}_{j}"), job=job) for j in range(4)])
        known: list[Result] = []
        while any(executor.pending(job) for job in jobs[:2]):
            known += executor.results(1.0, *jobs[:2])
        assert Counter(r.candidate.job.id for r in known) == {jobs[0].id: 4, jobs[1].id: 4}
        assert executor.pending(jobs[2]) == 4
        assert executor.results(0.0, *jobs[:2]) == []
        assert len(collect(executor, jobs[2])) == 4

    def test_cancelling_one_job_leaves_the_other(self, executor) -> None:
        one, another = replace(self.good("a").job, id="one"), replace(self.good("a").job, id="two")
        for i in range(4):
            for job in (one, another):
                name = f"{job.id}{i}"
                executor.submit(job, [replace(self.good(f"{name}_{j}"), job=job) for j in range(8)])
        executor.cancel(one)
        assert executor.pending(one) < 32
        assert executor.pending(another) == 32
        assert executor.pending() == 32 + executor.pending(one)
        assert len(collect(executor, another)) == 32
        collect(executor, one)
        assert executor.pending() == 0

    def test_the_latency_to_beat_cuts_slow_candidates_short(self, executor) -> None:
        submit(executor, self.good("good"))
        [good] = collect(executor)
        submit(executor, self.slow("slow"), best=good.score)
        [slow] = collect(executor)
        assert slow.status is Status.SLOW

    def test_final_candidates_are_compared_at_length(self, executor) -> None:
        submit(executor, self.good("a"), self.good("b"), final=True)
        results = collect(executor)
        assert [m.round for m in results] == ["final", "final"]
        assert all(len(m.samples) > 5 for m in results)

    def test_cancelling_drops_what_has_not_started(self, executor) -> None:
        job = submit(executor, *(self.good(f"good{i}") for i in range(64)))
        executor.cancel(job)
        running = executor.pending()
        assert running < 64
        assert len(collect(executor)) == running
        submit(executor, self.good("after"), final=True)
        [after] = collect(executor)
        assert after.round == "final"

    def test_closing_drops_what_is_pending_at_once(self) -> None:
        executor = self.make()
        submit(executor, *(self.good(f"good{i}") for i in range(64)))
        executor.close()
        executor.close()
        assert executor.pending() == 0
        assert executor.results() == []

    def test_results_may_be_asked_for_after_all_came(self, executor) -> None:
        submit(executor, self.good("good"))
        collect(executor)
        assert executor.results() == []
