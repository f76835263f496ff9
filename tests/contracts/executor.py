"""What every executor does. Inherit, and say how it and its candidates are made."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

import pytest

from measure.interfaces import Executor
from measure.measurement import Candidate, Measurement, Status


def collect(executor: Executor, patience: float = 120.0) -> list[Measurement]:
    """All that is pending."""
    known: list[Measurement] = []
    deadline = time.monotonic() + patience
    while executor.pending() and time.monotonic() < deadline:
        known += executor.results(timeout=1.0)
    return known


class ExecutorContract(ABC):
    """Tests of ``measure.interfaces.Executor``."""

    @abstractmethod
    def make(self) -> Executor:
        """A new executor."""

    @abstractmethod
    def good(self, name: str) -> Candidate:
        """A right kernel; another name, another kernel and schedule."""

    @abstractmethod
    def other(self, name: str) -> Candidate:
        """A right kernel of another workload."""

    @abstractmethod
    def crashing(self, name: str) -> Candidate:
        """A kernel that kills its process or poisons its device."""

    @abstractmethod
    def broken(self, name: str) -> Candidate:
        """A candidate that does not build."""

    @abstractmethod
    def slow(self, name: str) -> Candidate:
        """A right kernel, at least ten times as slow as ``good`` and over a millisecond."""

    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        executor = self.make()
        yield executor
        executor.close()

    def test_without_candidates_there_are_no_results(self, executor) -> None:
        assert executor.pending() == 0
        assert executor.results() == []
        executor.submit([])
        assert executor.results() == []

    def test_each_candidate_gives_one_result(self, executor) -> None:
        batches = [[self.good(f"good{i}_{j}") for j in range(3)] for i in range(3)]
        for batch in batches:
            executor.submit(batch)
        assert executor.pending() == 9
        results = collect(executor)
        assert executor.pending() == 0
        assert all(m.ok for m in results)
        wanted = {c.schedule for batch in batches for c in batch}
        assert len(results) == len(wanted)
        assert {m.schedule for m in results} == wanted

    def test_failures_are_results(self, executor) -> None:
        executor.submit([self.broken("a"), self.crashing("b"), self.good("c")])
        results = {str(m.schedule): m.status for m in collect(executor)}
        assert sorted(results.values()) == [Status.ERROR, Status.ERROR, Status.OK]
        assert next(s for text, s in results.items() if text.endswith("=c")) is Status.OK

    def test_waiting_ends_with_the_timeout(self, executor) -> None:
        executor.submit([self.good("good")])
        results = executor.results(timeout=0.0)
        assert executor.pending() == 1 - len(results)
        collect(executor)

    def test_workloads_may_be_mixed(self, executor) -> None:
        executor.submit([self.good("a"), self.other("b"), self.good("c")])
        results = collect(executor)
        assert len(results) == 3
        assert all(m.ok for m in results)

    def test_the_latency_to_beat_cuts_slow_candidates_short(self, executor) -> None:
        executor.submit([self.good("good")])
        [good] = collect(executor)
        executor.set_best(good.score)
        executor.submit([self.slow("slow")])
        [slow] = collect(executor)
        assert slow.status is Status.SLOW

    def test_final_candidates_are_compared_at_length(self, executor) -> None:
        executor.submit([self.good("a"), self.good("b")], final=True)
        results = collect(executor)
        assert [m.round for m in results] == ["final", "final"]
        assert all(len(m.samples) > 5 for m in results)

    def test_cancelling_drops_what_has_not_started(self, executor) -> None:
        executor.submit([self.good(f"good{i}") for i in range(64)])
        executor.cancel()
        running = executor.pending()
        assert running < 64
        assert len(collect(executor)) == running
        executor.submit([self.good("after")], final=True)
        [after] = collect(executor)
        assert after.round == "final"

    def test_closing_drops_what_is_pending_at_once(self) -> None:
        executor = self.make()
        executor.submit([self.good(f"good{i}") for i in range(64)])
        start = time.monotonic()
        executor.close()
        executor.close()
        assert time.monotonic() - start < 30
        assert executor.pending() == 0
        assert executor.results() == []

    def test_results_may_be_asked_for_after_all_came(self, executor) -> None:
        executor.submit([self.good("good")])
        collect(executor)
        assert executor.results() == []
