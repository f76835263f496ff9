"""Arrays of kernels that compute a program in turn, by where they are in the program's arrays."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.spaces.kernel import Kernel

if TYPE_CHECKING:
    from tilewright.spaces.staged.partition import Part


@dataclass(frozen=True)
class Place:
    """The place of a kernel's array: in the array ``name`` of the program, or of that name in
    between, from byte ``start`` on. That array has ``bytes`` in all."""

    name: str
    bytes: int
    start: int = 0


Places = Sequence[Mapping[str, Place]]
"""The place of each array of each kernel, by the kernel's name for it."""


def places(parts: Sequence[Part], kernels: Sequence[Kernel]) -> Places:
    """Return where the kernels of ``parts`` find what they read and put what they write."""
    return [
        {array.name: part.place(array) for array in kernel.call.arrays}
        for part, kernel in zip(parts, kernels, strict=True)
    ]


def between(kernels: Sequence[Kernel], known: Places, own: Container[str]) -> dict[str, int]:
    """Return the bytes of the arrays that kernels hand on, by name, in order; ``own`` are those of
    the program."""
    written = (
        places[array.name]
        for kernel, places in zip(kernels, known, strict=True)
        for array in kernel.call.written
    )
    return {place.name: place.bytes for place in written if place.name not in own}
