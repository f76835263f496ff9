"""Bugs planted into calls of several launches, whose kernels are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.kernels import rewritten
from tests.measure.cuda.emulator.planting import Case
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tilewright.spaces.kernel import Buffer, Call, Kernel

Change = Callable[[Call], Call]


class CallContract(KernelContract):
    """A bug is the name of a kernel, and what changes its call."""

    bugs: Mapping[str, tuple[Any, ...]] = {}

    def planted(self, name: str) -> Case:
        """A kernel whose call has a bug."""
        kind, change = self.bugs[name]
        work, kernel = self.case(kind)
        number = list(self.bugs).index(name)
        named = rewritten(kernel, kernel.source.body, f"{kernel.call.entry}_bug_{number}")
        return work, Kernel(named.source, change(named.call))


def without(place: int) -> Change:
    """One launch is left out."""
    return lambda call: replace(call, launches=(*call.launches[:place], *call.launches[place:][1:]))


def moved(place: int, name: str, change: Callable[[Buffer], Buffer]) -> Change:
    """A launch is given another piece of memory under a name."""

    def with_bug(call: Call) -> Call:
        launch = call.launches[place]
        buffers = tuple(change(b) if b.name == name else b for b in launch.buffers)
        assert buffers != launch.buffers
        launches = list(call.launches)
        launches[place] = replace(launch, buffers=buffers)
        return replace(call, launches=tuple(launches))

    return with_bug


def by(size: int) -> Callable[[Buffer], Buffer]:
    """A piece of memory so many bytes further on."""
    return lambda buffer: replace(buffer, start=buffer.start + size)
