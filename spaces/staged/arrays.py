"""Arrays of kernels that compute a program in turn, by what the program calls them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from tilewright.spaces.kernel import Kernel
from tilewright.spaces.staged.partition import Part
from tilewright.spaces.workloads.array import Array

Named = Sequence[Mapping[str, str]]
"""The name of each array of each kernel in the whole program, or of an array in between."""


def named(parts: Sequence[Part], kernels: Sequence[Kernel]) -> Named:
    """Return the names in the program of what the kernels of its ``parts`` read and write."""
    return [
        {array.name: part.named(array) for array in kernel.call.arrays}
        for part, kernel in zip(parts, kernels, strict=True)
    ]


def between(kernels: Sequence[Kernel], names: Named, own: Container[str]) -> dict[str, Array]:
    """Return the arrays that kernels hand on, by name, in order; ``own`` are those of the
    program."""
    return {
        known[array.name]: array
        for kernel, known in zip(kernels, names, strict=True)
        for array in kernel.call.written
        if known[array.name] not in own
    }
