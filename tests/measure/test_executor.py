import threading
from dataclasses import replace

import pytest

from tests.measure.cpu import c_kernels
from tests.measure.cpu.c_kernels import good, product, target
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, Measurement, Status
from tilewright.measure.testing.executor import ExecutorContract, collect, submit
from tilewright.spaces.errors import InputError


class TestLocalExecutor(ExecutorContract):
    threads = 1

    def make(self):
        return LocalExecutor(target(self.threads))

    def on_target(self, candidate):
        return replace(candidate, job=replace(candidate.job, target=target(self.threads)))

    def good(self, name):
        return self.on_target(c_kernels.good(name))

    def other(self, name):
        return self.on_target(c_kernels.good(name, product(16, 16, 16)))

    def crashing(self, name):
        return self.on_target(c_kernels.crashing(name))

    def broken(self, name):
        return self.on_target(c_kernels.broken(name))

    def slow(self, name):
        return self.on_target(c_kernels.slow(name))


@pytest.mark.skipif(target().cores < 2, reason="needs two cores")
class TestLocalExecutorOfAllThreads(TestLocalExecutor):
    threads = target().cores


class FailingRunner:
    """A runner whose set-up is broken."""

    def run(self, job, built) -> list[Measurement]:
        raise RuntimeError("the device is gone")

    def close(self) -> None:
        pass


def test_a_fault_of_the_runner_itself_is_raised_to_the_caller():
    executor = LocalExecutor(target(), runner=FailingRunner())
    submit(executor, good("a"))
    with pytest.raises(RuntimeError, match="device is gone"):
        executor.results()
    assert executor.pending() == 0
    with pytest.raises(RuntimeError, match="closed"):
        submit(executor, good("b"))


class WaitingRunner:
    """A runner that is at work until it is told to end."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def run(self, job, built) -> list[Measurement]:
        self.began.set()
        self.may_end.wait()
        return [Measurement(b.candidate.schedule, Status.OK, 1.0, (1.0,)) for b in built]

    def close(self) -> None:
        self.may_end.set()


def test_what_runs_cannot_be_cancelled():
    runner = WaitingRunner()
    executor = LocalExecutor(target(), runner=runner)
    job = submit(executor, good("a"))
    runner.began.wait()
    executor.cancel(job)
    assert executor.pending(job) == 1
    runner.may_end.set()
    [result] = collect(executor, job)
    assert result.ok
    assert executor.pending(job) == 0
    executor.close()


class WaitingBuilder:
    """A builder that is at work until it is closed, and knows what it was asked to build."""

    batch = 16

    def __init__(self) -> None:
        self.began, self.closed = threading.Event(), threading.Event()
        self.asked: list[Candidate] = []

    def build(self, candidates):
        self.asked += candidates
        self.began.set()
        self.closed.wait()
        return [Built(candidate) for candidate in candidates]

    def close(self) -> None:
        self.closed.set()


def test_nothing_more_is_built_once_it_is_closed():
    builder = WaitingBuilder()
    executor = LocalExecutor(target(), builder=builder, runner=WaitingRunner())
    first, second = good("a"), good("b")
    submit(executor, first)
    builder.began.wait()
    submit(executor, second)
    executor.close()
    assert builder.asked == [first]


def test_a_builder_is_closed_where_there_is_no_runner(monkeypatch):
    def refuse(target):
        raise InputError("no GPU to run on")

    monkeypatch.setattr("tilewright.measure.executor.runner_for", refuse)
    builder = WaitingBuilder()
    with pytest.raises(InputError, match="no GPU to run on"):
        LocalExecutor(target(), builder=builder)
    assert builder.closed.is_set()


def test_a_job_for_another_target_is_refused():
    executor = LocalExecutor(target())
    other = replace(good("a").job, target=replace(target(), threads=2))
    with pytest.raises(InputError, match="cannot run here; allowed: "):
        executor.submit(other, [])
    executor.close()


def test_a_candidate_of_another_job_is_refused():
    executor = LocalExecutor(target())
    with pytest.raises(ValueError, match="several jobs"):
        executor.submit(replace(good("a").job, id="another"), [good("a")])
    assert executor.pending() == 0
    executor.close()
