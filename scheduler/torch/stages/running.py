"""Call the stages of a graph: groups side by side, in threads of a CPU or streams of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from threading import Barrier
from typing import Any, Protocol

import torch

Compiled = Callable[[list[Any]], Sequence[Any]]
"""A piece that Inductor compiled: a function of a list of inputs, which is emptied."""


class Side(Protocol):
    """A way to run calls side by side."""

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Run all calls; what any of them raises is raised when all have ended."""
        ...


class Threads:
    """Threads of a pool, each of which has ``share`` threads of torch's."""

    def __init__(self, count: int, share: int) -> None:
        self._share, self._began = share, Barrier(count)
        before = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(count, "tilewright-stage", self._begin)
        wait([self._pool.submit(self._began.wait) for _ in range(count)])
        torch.set_num_threads(before)  # for threads that begin later: each was told its own

    def _begin(self) -> None:
        torch.get_num_threads()  # the first look takes the number that all threads have
        torch.set_num_threads(self._share)

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Run all calls, a thread each, as inference like the caller."""
        inference = torch.is_inference_mode_enabled()

        def called(call: Callable[[], None]) -> None:
            with torch.inference_mode(inference), torch.no_grad():
                call()

        futures = [self._pool.submit(called, call) for call in calls]
        wait(futures)
        for future in futures:
            future.result()


@cache
def threads(count: int, share: int) -> Threads:
    """Return the pool of so many threads, which is made once."""
    return Threads(count, share)


class Streams:
    """Streams of a GPU that begin after the current one, which waits for them: as events say, so
    that a CUDA graph can capture it.

    No tensor needs to be kept for another stream: each is given up after a stage, when the current
    stream waits for all others, and what a stream takes next begins after the current one.
    ``cuda`` is ``torch.cuda``, or what stands for it in tests.
    """

    def __init__(self, cuda: Any = torch.cuda) -> None:
        self._cuda, self._others = cuda, list[Any]()

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Run all calls, the first in the current stream."""
        while len(self._others) < len(calls) - 1:
            self._others.append(self._cuda.Stream())
        current, others = self._cuda.current_stream(), self._others[: len(calls) - 1]
        for stream, call in zip(others, calls[1:], strict=True):
            stream.wait_stream(current)
            with self._cuda.stream(stream):
                call()
        calls[0]()
        for stream in others:
            current.wait_stream(stream)


@dataclass(frozen=True)
class Step:
    """A piece with the places of its inputs and outputs among all values of a graph."""

    function: Compiled
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def run(self, values: list[Any]) -> None:
        """Read its inputs and write its outputs."""
        found = self.function([values[place] for place in self.inputs])
        for place, value in zip(self.outputs, found, strict=True):
            values[place] = value


@dataclass(frozen=True)
class Stage:
    """Groups of steps that run on a ``side``, and the places of values that nobody needs after."""

    groups: Sequence[Sequence[Step]]
    side: Side
    last: Sequence[int] = ()

    def run(self, values: list[Any]) -> None:
        """Run all groups, then give up values."""
        calls = [partial(_run_all, group, values) for group in self.groups]
        if len(calls) == 1:
            calls[0]()
        else:
            self.side.run(calls)
        for place in self.last:
            values[place] = None


def _run_all(steps: Sequence[Step], values: list[Any]) -> None:
    for step in steps:
        step.run(values)


class Staged:
    """A graph of ``count`` values whose first are its inputs, as stages."""

    _boxed_call = True  # it takes a list, as what Inductor compiles does

    def __init__(self, stages: Sequence[Stage], count: int, outputs: Sequence[Any]) -> None:
        self._stages, self._count, self._outputs = stages, count, outputs

    def __call__(self, inputs: list[Any]) -> tuple[Any, ...]:
        """Return the outputs for a list of inputs, which is emptied. Each of ``outputs`` is the
        place of a value, or None."""
        values = [*inputs, *[None] * (self._count - len(inputs))]
        inputs.clear()
        for stage in self._stages:
            stage.run(values)
        return tuple(None if place is None else values[place] for place in self._outputs)
