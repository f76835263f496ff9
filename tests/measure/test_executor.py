from dataclasses import replace

import pytest

from measure.executor import LocalExecutor
from measure.measurement import Measurement, Status
from tests.contracts.executor import ExecutorContract, collect
from tests.measure.cpu import c_kernels
from tests.measure.cpu.c_kernels import product, target


class TestLocalExecutor(ExecutorContract):
    threads = 1

    def make(self):
        return LocalExecutor(target(self.threads))

    def on_target(self, candidate):
        return replace(candidate, target=target(self.threads))

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

    def run(self, built, best=None, final=False) -> list[Measurement]:
        raise RuntimeError("the device is gone")

    def close(self) -> None:
        pass


def test_a_fault_of_the_runner_itself_is_raised_to_the_caller():
    executor = LocalExecutor(target(), runner=FailingRunner())
    executor.submit([c_kernels.good("a")])
    with pytest.raises(RuntimeError, match="device is gone"):
        executor.results()
    assert executor.pending() == 0
    with pytest.raises(RuntimeError, match="closed"):
        executor.submit([c_kernels.good("b")])


def test_the_latency_to_beat_is_forgotten_when_the_workload_changes():
    executor = LocalExecutor(target())
    executor.submit([c_kernels.good("a", product(8, 8, 8))])
    [tiny] = collect(executor)
    executor.set_best(tiny.score)
    executor.submit([c_kernels.slow("b")])
    [other] = collect(executor)
    assert other.status is Status.OK
    executor.close()
