"""The bookkeeping of CUDA graphs, with a driver that records calls and replays them in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tilewright import InputError, graphs
from tilewright.scheduler.torch.serving.graphs import STAYS, Captured, Graphs

KERNELS = 4
"""Sizes that are equal in their quotient by it have equal kernels."""


class Recorded:
    """A graph: the call that was captured, and the outputs that each replay overwrites."""

    def __init__(self, call: Callable[[], Tensor]) -> None:
        self.call, self.outputs = call, call()
        self.now = self  # of an executable that is this graph: what it launches

    def replay(self) -> None:
        self.outputs.copy_(self.call())


class FakeDriver:
    """A driver whose graphs take 10 bytes, and whose executables take 100."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.freed: list[Any] = []

    def capture(self, call: Callable[[], Tensor]) -> Captured:
        graph = Recorded(call)
        self.said.append(f"capture {len(graph.outputs)}")
        return Captured(graph, graph.outputs, 10)

    def instantiate(self, graph: Recorded) -> tuple[list[Recorded], int]:
        self.said.append(f"instantiate {len(graph.outputs)}")
        return [graph], 100

    def update(self, executable: list[Recorded], graph: Recorded) -> bool:
        fits = len(executable[0].outputs) // KERNELS == len(graph.outputs) // KERNELS
        self.said.append(f"update to {len(graph.outputs)}" if fits else "refuse")
        if fits:
            executable[0] = graph
        return fits

    def launch(self, executable: list[Recorded]) -> None:
        assert not any(executable is each or executable[0] is each for each in self.freed)
        self.said.append(f"launch {len(executable[0].outputs)}")
        executable[0].replay()

    def free(self, what: Any) -> None:
        assert not any(what is each for each in self.freed)
        self.freed.append(what)


class InPlace(FakeDriver):
    """A driver whose executables are the graphs that they are made of, as those of torch."""

    count = 0

    def instantiate(self, graph: Recorded) -> tuple[Any, int]:
        self.count += 1
        graph.now = graph
        return graph, 100

    def update(self, executable: Any, graph: Recorded) -> bool:
        held = [executable.now]
        fits = super().update(held, graph)
        executable.now = held[0]
        return fits

    def launch(self, executable: Any) -> None:
        super().launch([executable.now])


def model(x: Tensor) -> Tensor:
    return x * 2 + 1


def made(*sizes: int, memory: int | None = None) -> tuple[Graphs, FakeDriver]:
    driver = FakeDriver()
    return graphs(model, sizes, memory, driver), driver


def called(fast: Graphs, driver: FakeDriver, size: int) -> list[str]:
    """What the driver is told by a call, whose result is right."""
    driver.said.clear()
    x = torch.randn(size, 3)
    assert torch.equal(fast(x), model(x))
    return list(driver.said)


def test_a_size_is_captured_when_it_is_called_and_the_largest_first() -> None:
    fast, driver = made(1, 5, 20)
    told = called(fast, driver, 5)
    assert told == [
        "capture 20",
        "instantiate 20",
        "capture 5",
        "refuse",
        "instantiate 5",
        "launch 5",
    ]
    assert called(fast, driver, 5) == ["launch 5"]
    assert called(fast, driver, 20) == ["update to 20", "launch 20"]  # after the refusal
    assert called(fast, driver, 20) == ["launch 20"]
    assert fast.captured == (5, 20)
    assert fast.executables == 2


def test_neighbouring_sizes_share_an_executable() -> None:
    fast, driver = made(8, 9, 10)
    called(fast, driver, 10)
    assert called(fast, driver, 9) == ["capture 9", "update to 9", "launch 9"]
    assert called(fast, driver, 10) == ["update to 10", "launch 10"]
    assert called(fast, driver, 10) == ["launch 10"]
    assert fast.bytes == 2 * 10 + 100
    assert fast.executables == 1


def test_a_size_that_stays_gets_an_executable_of_its_own() -> None:
    fast, driver = made(8, 9, 10)
    for size in (10, 9):
        called(fast, driver, size)
    told = [called(fast, driver, 9) for _ in range(2 * STAYS)]
    assert told.count(["instantiate 9", "launch 9"]) == 1
    assert told.index(["instantiate 9", "launch 9"]) == STAYS - 1
    assert fast.executables == 2
    assert fast.bytes == 2 * 10 + 2 * 100
    assert called(fast, driver, 10) == ["update to 10", "launch 10"]
    assert called(fast, driver, 9) == ["launch 9"]


def test_an_executable_that_was_never_updated_is_as_fast_as_a_new_one() -> None:
    fast, driver = made(10)
    told = [called(fast, driver, 10) for _ in range(2 * STAYS)]
    assert all(each == ["launch 10"] for each in told[1:])


def test_the_graph_that_is_an_executable_is_instantiated_anew_for_all_who_share_it() -> None:
    driver = InPlace()
    fast = graphs(model, (9, 10), None, driver)
    for size in (10, 9, *[10] * 2 * STAYS):
        called(fast, driver, size)
    assert driver.said == ["launch 10"]
    assert driver.count == 2
    assert called(fast, driver, 9) == ["update to 9", "launch 9"]
    assert fast.executables == 1
    for _ in range(2 * STAYS):
        called(fast, driver, 9)
    assert fast.executables == 2
    assert driver.freed == []


def test_the_last_size_of_a_shared_executable_frees_it() -> None:
    fast, driver = made(1, 9, 10, memory=220)
    for size in (10, 9, 1):  # the graph of 10 is dropped
        called(fast, driver, size)
    for _ in range(2 * STAYS):
        called(fast, driver, 9)
    assert fast.captured == (1, 9)
    assert len(driver.freed) == 2  # the graph of 10, and the executable that was made of it


def test_the_least_recently_used_graphs_are_dropped() -> None:
    fast, driver = made(1, 9, 20, memory=220)
    for size in (20, 9, 20, 1):
        called(fast, driver, size)
    assert fast.captured == (20, 1)
    assert fast.bytes == 220
    assert len(driver.freed) == 2  # a graph and its executable
    assert "capture 9" in called(fast, driver, 9)


def test_an_executable_lives_as_long_as_a_size_shares_it() -> None:
    fast, driver = made(1, 9, 10, memory=230)
    for size in (10, 9, 1):
        called(fast, driver, size)
    assert fast.captured == (10, 9, 1)
    tight, driver = made(1, 9, 10, memory=220)
    for size in (10, 9, 1):
        called(tight, driver, size)
    assert tight.captured == (9, 1)
    assert len(driver.freed) == 1  # the graph of 10 alone
    assert called(tight, driver, 9) == ["update to 9", "launch 9"]


def test_outputs_stay_when_another_size_is_called() -> None:
    fast, _ = made(2, 3)
    x = torch.ones(2, 3)
    kept = fast(x)
    fast(torch.zeros(3, 3))
    fast(torch.zeros(2, 3))
    assert torch.equal(kept, model(x))


def test_another_size_is_the_models() -> None:
    fast, driver = made(2, 3)
    assert called(fast, driver, 7) == []


@pytest.mark.parametrize(
    ("sizes", "memory", "words"),
    [
        ([], None, "sizes=[]; allowed: whole numbers from 1 on"),
        ([0, 3], None, "sizes=[0, 3]; allowed: whole numbers from 1 on"),
        ([3], 0, "memory=0; allowed: bytes, or None for no limit"),
    ],
)
def test_wrong_sizes_and_memory_are_one_line(sizes: list[int], memory: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        graphs(model, sizes, memory, FakeDriver())
    assert str(caught.value) == words


def test_inputs_differ_in_their_size_alone() -> None:
    fast, _ = made(2, 3)
    fast(torch.ones(2, 3))
    for wrong, words in (
        ((torch.ones(2, 4),), "of shape (2, 3)"),
        ((torch.ones(2, 3).double(),), "allowed: torch.float32"),
        ((torch.ones(2, 3), torch.ones(2, 3)), "2 inputs are given; allowed: 1"),
        ((torch.ones(2, 3), torch.ones(3)), "2 inputs are given; allowed: 1"),
    ):
        with pytest.raises(InputError) as caught:
            fast(*wrong)
        assert words in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_there_are_no_graphs() -> None:
    with pytest.raises(InputError, match="CUDA graphs need a GPU"):
        graphs(model, [1, 2])
