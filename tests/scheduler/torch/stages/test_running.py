"""Groups run side by side, on threads with their share and on streams that wait for each other."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Barrier, current_thread

import pytest
import torch

from tilewright.scheduler.torch.stages.running import Stage, Staged, Step, Streams, threads


def test_each_thread_has_its_share_and_the_caller_keeps_its_own() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        side, meeting, seen = threads(2, 1), Barrier(2, timeout=60), []

        def call() -> None:
            meeting.wait()  # nobody comes past it alone
            seen.append((current_thread().name, torch.get_num_threads(), torch.is_grad_enabled()))

        side.run([call, call])
        assert torch.get_num_threads() == 4
        names, shares, grads = zip(*seen, strict=True)
        assert len(set(names)) == 2
        assert (shares, grads) == ((1, 1), (False, False))
    finally:
        torch.set_num_threads(before)


def test_what_a_group_raises_is_raised_when_all_have_ended() -> None:
    ended = []

    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        threads(2, 1).run([fails, lambda: ended.append(1)])
    assert ended == [1]


class Cuda:
    """Streams as ``torch.cuda`` has them, which write down what they are told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.made = 0
        self.current = self.Stream("main")

    def Stream(self, name: str = "") -> object:  # noqa: N802
        if not name:
            self.made += 1
            name = f"side{self.made}"
        told = self.told

        class Made:
            def wait_stream(self, other: object) -> None:
                told.append(f"{name} waits for {other}")

            def __repr__(self) -> str:
                return name

        return Made()

    def current_stream(self) -> object:
        return self.current

    @contextmanager
    def stream(self, stream: object):
        before, self.current = self.current, stream
        yield
        self.current = before


def test_streams_begin_after_the_current_one_which_waits_for_them() -> None:
    """So that a graph that is being captured has all of them in it."""
    cuda = Cuda()
    streams = Streams(cuda)
    for _ in range(2):
        cuda.told.clear()
        calls = [lambda n=n: cuda.told.append(f"{n} on {cuda.current}") for n in "abc"]
        streams.run(calls)
        assert cuda.told == [
            "side1 waits for main",
            "b on side1",
            "side2 waits for main",
            "c on side2",
            "a on main",
            "main waits for side1",
            "main waits for side2",
        ]
    assert cuda.made == 2


def test_values_are_given_up_after_the_last_stage_that_reads_them() -> None:
    class InOrder:
        def run(self, calls) -> None:
            for call in calls:
                call()

    seen = []

    def adding(number: int):
        return lambda given: [sum(given) + number]

    def looking(given: list[int]) -> list[int]:
        seen.append(list(given))
        return [given[0] * given[1]]

    first = [
        [Step(adding(1), (0,), (1,))],
        [Step(adding(2), (0,), (2,)), Step(adding(3), (2,), (3,))],
    ]
    stages = [
        Stage(first, InOrder(), last=(0, 2)),
        Stage([[Step(looking, (1, 3), (4,))]], InOrder(), last=(1, 3)),
    ]
    given = [10]
    assert Staged(stages, 5, [4, None])(given) == (11 * 15, None)
    assert given == []
    assert seen == [[11, 15]]
