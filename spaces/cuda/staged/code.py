"""The CUDA C++ of kernels that are launched in sequence, with arrays of their own between them.

The workspace begins with the kernels' own workspaces, the same bytes for all: those that stay zero,
all up to the same byte, then those that nobody keeps. Behind that are the arrays in between. Each
kernel has a namespace, for kernels share names of helpers. It is no inline one: a call with numbers
of 16 bits, whose type is of no namespace, would find the helpers of all kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.kernel import WORKSPACE, Argument, Buffer, Call, Kernel, Launch, Source
from tilewright.spaces.staged.arrays import Places, between

ALIGNMENT = 128
"""Alignment in bytes of all parts of the workspace, and of the end of kernels' zeros."""


@dataclass(frozen=True)
class StagedCode:
    """The kernel named ``entry`` that launches ``kernels``.

    ``arguments`` are its arrays, and ``places`` say where each array of each kernel is: in one of
    these, or in one in between.
    """

    entry: str
    arguments: tuple[Argument, ...]
    kernels: Sequence[Kernel]
    places: Places

    def kernel(self) -> Kernel:
        """Return all kernels as one."""
        numbers = range(len(self.kernels))
        call = Call(
            self.entry,
            self.arguments,
            self._ends[-1],
            self._zeroed,
            tuple(launch for number in numbers for launch in self._launches(number)),
        )
        return Kernel(Source("cuda", "", "".join(map(self._text, numbers))), call)

    def _text(self, number: int) -> str:
        kernel, names = self.kernels[number], f"{self._name(number)}_names"
        body = kernel.source.body.replace(kernel.call.entry, self._name(number))
        functions = dict.fromkeys(self._function(number, launch) for launch in kernel.call.launches)
        seen = "".join(f"using {names}::{function};\n" for function in functions)
        return f"namespace {names} {{\n{kernel.source.prelude}\n{body}}}\n{seen}"

    def _function(self, number: int, launch: Launch) -> str:
        """Return the name of the function that a launch of a kernel starts."""
        call = self.kernels[number].call
        return call.function(launch).replace(call.entry, self._name(number))

    def _name(self, number: int) -> str:
        return f"{self.entry}_{number + 1}"

    def _launches(self, number: int) -> Iterator[Launch]:
        """Yield the launches of a kernel on its share of the call's memory."""
        call, names = self.kernels[number].call, self._names(number)
        for launch in call.launches:
            yield replace(
                launch,
                entry=self._function(number, launch),
                buffers=tuple(self._buffer(number, buffer) for buffer in call.buffers(launch)),
                tensor_maps=tuple(
                    replace(spec, operand=names.get(spec.operand, spec.operand))
                    for spec in launch.tensor_maps
                ),
            )

    def _names(self, number: int) -> Mapping[str, str]:
        """Return the names of the arrays that those of a kernel are in."""
        return {name: place.name for name, place in self.places[number].items()}

    # -- memory --------------------------------------------------------------------------------

    def _buffer(self, number: int, buffer: Buffer) -> Buffer:
        if buffer.inside == WORKSPACE:
            start = self._zeroed - self.kernels[number].call.workspace_zeroed
            return replace(buffer, start=start + buffer.start)
        place = self.places[number][buffer.inside]
        start, name = place.start + buffer.start, place.name
        if name in self._between:
            start += self._ends[list(self._between).index(name)]
            return replace(buffer, name=name, inside=WORKSPACE, start=start)
        return replace(buffer, name=name, inside=name, start=start)

    @cached_property
    def _between(self) -> Mapping[str, int]:
        """Bytes of each array that a kernel hands on."""
        own = {argument.array.name for argument in self.arguments}
        return between(self.kernels, self.places, own)

    @cached_property
    def _zeroed(self) -> int:
        """Bytes that stay zero: as many as any kernel needs, which all end at the same byte."""
        zeroed = [kernel.call.workspace_zeroed for kernel in self.kernels]
        assert not any(size % ALIGNMENT for size in zeroed)
        return max(zeroed)

    @cached_property
    def _ends(self) -> Sequence[int]:
        """The ends of the kernels' own memory and, after it, of each array in between."""
        calls = [kernel.call for kernel in self.kernels]
        own = max(call.workspace_bytes - call.workspace_zeroed for call in calls)
        ends = [round_up(self._zeroed + own, ALIGNMENT)]
        for size in self._between.values():
            ends.append(ends[-1] + round_up(size, ALIGNMENT))
        return ends
