"""The buffers of one emulated call, shared with its process through an anonymous file."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.measure.cpu.problem import array_in
from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.kernel import WORKSPACE, Buffer, Call
from tilewright.spaces.workloads.array import Array

_PAGE, _ALIGNMENT = 4096, 256
_POISON = 0xFF  # NaN in every floating-point type


@dataclass(frozen=True)
class _Region:
    """Pages of the file with one buffer at their end, so that an overrun leaves them."""

    name: str
    offset: int
    bytes: int
    start: int
    used: int


class Memory:
    """A kernel's memory on the host: inputs are filled in, the rest is poisoned with NaN, and
    workspace is zeroed as the kernel asks.

    A context manager: the file lives within it; arrays handed out are copies.
    """

    def __init__(self, call: Call, inputs: Mapping[str, np.ndarray]) -> None:
        self._call = call
        sizes = [(array.name, array.span_bytes) for array in call.arrays]
        if call.workspace_bytes:
            sizes.append((WORKSPACE, call.workspace_bytes))
        self._regions = {region.name: region for region in _regions(sizes)}
        self.file = os.memfd_create("tilewright-emulator")
        total = sum(region.bytes for region in self._regions.values())
        os.ftruncate(self.file, total)
        self._bytes = np.frombuffer(mmap.mmap(self.file, total), dtype=np.uint8)
        self._bytes[:] = _POISON
        for operand in call.read:
            self._view(operand)[...] = np.asarray(inputs[operand.name])
        if call.workspace_bytes:
            self._place(WORKSPACE)[: call.workspace_zeroed] = 0

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.file)

    def lines(self, buffers: Sequence[Buffer]) -> Iterator[str]:
        """Say how the request of a launch describes the memory that it is given; see ``main.cpp``.
        Pages of the file with all of a buffer in them are mapped, for each buffer by itself."""
        yield f"memory {self.file}"
        for b in buffers:
            region = self._regions[b.inside]
            first = region.offset + region.start + b.start
            page = first // _PAGE * _PAGE
            pages = round_up(first + b.bytes, _PAGE) - page
            yield f"buffer {b.name} {page} {pages} {first - page} {b.bytes} {int(b.written)}"

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """A copy of each output by its name."""
        return {output.name: self._view(output).copy() for output in self._call.written}

    @property
    def workspace_is_zero(self) -> bool:
        """Tell whether the part of the workspace that must stay zero is zero."""
        zeroed = self._call.workspace_zeroed
        return not zeroed or not self._place(WORKSPACE)[:zeroed].any()

    def _place(self, name: str) -> np.ndarray:
        region = self._regions[name]
        first = region.offset + region.start
        return self._bytes[first : first + region.used]

    def _view(self, operand: Array) -> np.ndarray:
        """Return the operand's bytes as an array of its shape."""
        return array_in(self._place(operand.name), operand)


def _regions(sizes: list[tuple[str, int]]) -> Iterator[_Region]:
    offset = 0
    for name, used in sizes:
        aligned = round_up(used, _ALIGNMENT)
        length = round_up(aligned, _PAGE)
        yield _Region(name, offset, length, length - aligned, used)
        offset += length
