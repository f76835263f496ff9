"""Contract of runners. Inherit, and say how it, its builder and its candidates are made."""

from __future__ import annotations

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tilewright.measure.interfaces import Builder, Runner
from tilewright.measure.records.measurement import Candidate, ErrorKind, Measurement, Status


class RunnerContract(ABC):
    """Tests of ``measure.interfaces.Runner``. All candidates are of one workload and target."""

    clock = "wall"

    @abstractmethod
    def make(self) -> Runner:
        """Return a new runner."""

    @abstractmethod
    def make_builder(self) -> Builder:
        """Return a builder whose binaries the runner takes."""

    @abstractmethod
    def good(self, name: str) -> Candidate:
        """Return a right kernel; another name, another kernel."""

    @abstractmethod
    def wrong(self, name: str) -> Candidate:
        """Return a kernel with a wrong result."""

    @abstractmethod
    def crashing(self, name: str) -> Candidate:
        """Return a kernel that kills its process or poisons its device."""

    @abstractmethod
    def slow(self, name: str) -> Candidate:
        """Return a right kernel, at least ten times as slow as ``good`` and over a millisecond."""

    @pytest.fixture
    def builder(self) -> Iterator[Builder]:
        builder = self.make_builder()
        yield builder
        builder.close()

    @pytest.fixture
    def runner(self) -> Iterator[Runner]:
        runner = self.make()
        yield runner
        runner.close()

    def measure(
        self,
        runner: Runner,
        builder: Builder,
        candidates: Sequence[Candidate],
        best: float | None = None,
        final: bool = False,
    ) -> list[Measurement]:
        job = replace(candidates[0].job, best=best, final=final)
        measured = runner.run(job, builder.build(candidates))
        assert [m.schedule for m in measured] == [c.schedule for c in candidates]
        assert all((m.error_kind is None) == (m.score is not None) for m in measured)
        return measured

    def test_running_nothing_gives_nothing(self, runner: Runner) -> None:
        assert runner.run(self.good("good").job, []) == []

    def test_a_binary_may_come_as_bytes(self, runner, builder) -> None:
        [built] = builder.build([self.good("good")])
        packed = replace(built, binary=built.binary.read_bytes())
        [measured] = runner.run(built.candidate.job, [packed])
        assert measured.ok, measured.error_text

    def test_a_measurement_says_where_it_was_made(self, runner, builder) -> None:
        [good] = self.measure(runner, builder, [self.good("a")])
        assert good.place.host == platform.node()
        assert good.place.device.startswith(self.good("a").job.target.model)
        assert good.place.toolchain

    def test_a_right_kernel_has_samples_and_a_score(self, runner, builder) -> None:
        before = time.time()
        [measured] = self.measure(runner, builder, [self.good("good")])
        assert measured.status is Status.OK
        assert measured.error_kind is None
        assert measured.clock == self.clock
        assert measured.round == "search"
        assert measured.score is not None
        assert 0 < min(measured.samples) <= measured.score <= max(measured.samples)
        assert measured.reference_samples
        assert before <= measured.started_at <= time.time()
        assert measured.build_seconds > 0
        assert measured.run_seconds > 0

    def test_a_wrong_kernel_is_found(self, runner, builder) -> None:
        measured = self.measure(runner, builder, [self.wrong("wrong"), self.good("good")])
        assert [m.status for m in measured] == [Status.ERROR, Status.OK]
        assert measured[0].error_kind is ErrorKind.WRONG
        assert measured[0].score is None
        assert "expected" in measured[0].error_text

    def test_a_crash_costs_one_record(self, runner, builder) -> None:
        names = ("a", "b", "c")
        candidates = [self.good("a"), self.crashing("b"), self.good("c")]
        measured = self.measure(runner, builder, candidates)
        assert [m.ok for m in measured] == [True, False, True], names
        assert measured[1].error_kind in (ErrorKind.CRASH, ErrorKind.WORKER_LOST)
        assert measured[1].error_text

    def test_a_slow_kernel_is_cut_short(self, runner, builder) -> None:
        [good] = self.measure(runner, builder, [self.good("good")])
        [slow] = self.measure(runner, builder, [self.slow("slow")], best=good.score)
        assert slow.status is Status.SLOW
        assert len(slow.samples) == 1
        assert slow.score == slow.samples[0] > good.score

    def test_the_final_round_takes_more_samples_and_cuts_nothing(self, runner, builder) -> None:
        [search] = self.measure(runner, builder, [self.good("good")])
        candidates = [self.good("a"), self.slow("b"), self.good("c")]
        final = self.measure(runner, builder, candidates, best=search.score, final=True)
        assert all(m.ok and m.round == "final" for m in final)
        assert len(final[0].samples) > len(search.samples)

    def test_a_closed_runner_may_be_closed_again(self) -> None:
        runner = self.make()
        runner.close()
        runner.close()
