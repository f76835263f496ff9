"""Inputs and what they may give, in memory that the server can map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from tilewright.measure.drawing.interfaces import Draw
from tilewright.spaces.numerics.allowance import bounds_dtype
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Workload

# As compare.h numbers them; other types of 1 and 2 bytes are read through a table of their values.
KINDS = {"float64": 0, "float32": 1, "int32": 2, "bfloat16": 5, "int64": 6}
TABLE_KINDS = {2: 3, 1: 4}
ALIGNMENT = 4096
# These 16 bits, repeated, are not a number in every floating-point type of 2 bytes and more.
# Guards and workspaces are filled with another such pattern, 0xffff.
NOT_A_NUMBER = 0xFFF5
INTEGER_POISON = 0x7F7F


class Problem:
    """Memory for the inputs of a draw, and for the least and greatest values of each output.

    ``text`` describes it to the server (see plan.c), which inherits ``descriptor``: an anonymous
    file that goes when its last user does. The server may be started before :meth:`fill`.
    """

    def __init__(self, workload: Workload) -> None:
        self._inputs, self._judged = workload.inputs, [_Judged(o) for o in workload.outputs]
        sizes = [operand.span_bytes for operand in self._inputs]
        sizes += [size for output in self._judged for size in output.sizes]
        pages = (-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)
        *offsets, self._size = accumulate(pages, initial=0)
        count = len(self._inputs)
        self._offsets = offsets[:count]
        self._places = [offsets[i : i + 3] for i in range(count, len(offsets), 3)]
        self._file = os.fdopen(os.memfd_create("tilewright"), "w+b")
        os.ftruncate(self.descriptor, self._size)
        lines = [f"{self.descriptor} {self._size}", str(len(self._inputs))]
        for operand, offset in zip(self._inputs, self._offsets, strict=True):
            lines.append(f"{offset} {operand.span_bytes} {operand.name}")
        lines.append(str(len(self._judged)))
        lines += [o.line(at) for o, at in zip(self._judged, self._places, strict=True)]
        self.text = "\n".join(lines)

    def fill(self, draw: Draw) -> None:
        """Write the inputs, and work out what is allowed of outputs."""
        whole = np.frombuffer(mmap.mmap(self.descriptor, self._size), np.uint8)
        given = draw.workload.given(draw.inputs)
        for operand, offset in zip(self._inputs, self._offsets, strict=True):
            array_in(whole[offset:], operand)[...] = given[operand.name]
        judged = list(zip(self._judged, self._places, strict=True))
        draw.allowed({output.array.name: output.ends(whole, at) for output, at in judged})
        for output, (_, _, table) in judged:
            whole[table : table + output.table.nbytes] = output.table.view(np.uint8)

    @property
    def descriptor(self) -> int:
        """The descriptor of the anonymous file."""
        return self._file.fileno()

    def __enter__(self) -> Problem:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _Judged:
    """One output: its two bounds, and the values of its bit patterns, as the server has them."""

    def __init__(self, array: Array) -> None:
        self.array, self.table = array, _values_of_bit_patterns(array)
        self._bounds = replace(array, dtype=bounds_dtype(array).name)
        self.sizes = (self._bounds.span_bytes, self._bounds.span_bytes, self.table.nbytes)

    def ends(self, whole: np.ndarray, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the arrays of the bounds, at the first two of ``places`` (bytes). Between the rows
        of a slice there may be anything."""
        low, high, _ = places
        if self.array.leading is not None:
            kind, size = self._bounds.element.numpy, self._bounds.span_bytes
            whole[low : low + size].view(kind)[...] = -np.inf
            whole[high : high + size].view(kind)[...] = np.inf
        return array_in(whole[low:], self._bounds), array_in(whole[high:], self._bounds)

    def line(self, places: Sequence[int]) -> str:
        """Write the line of this array for plan.c."""
        array = self.array
        poison = INTEGER_POISON if array.element.is_integer else NOT_A_NUMBER
        kind = KINDS.get(array.dtype, TABLE_KINDS.get(array.element.bytes, -1))
        low, high, table = places
        size = array.span_bytes
        count = size // array.element.bytes
        return f"{low} {high} {table} {kind} {count} {size} {poison} {array.name}"


def array_in(memory: np.ndarray, operand: Array) -> np.ndarray:
    """Return the operand's array at the start of ``memory`` (bytes), as a view."""
    size = operand.element.bytes
    strides = [size * step for step in operand.strides]
    return np.ndarray(operand.shape, operand.element.numpy, memory.data, 0, strides)


def index_of(position: int, operand: Array) -> tuple[int, ...]:
    """Return the index of the element at ``position`` in memory."""
    remaining, index = position, [0] * len(operand.shape)
    for dimension in operand.order:
        index[dimension], remaining = divmod(remaining, operand.strides[dimension])
    return tuple(index)


def _values_of_bit_patterns(output: Array) -> np.ndarray:
    if output.dtype in KINDS:
        return np.zeros(0)
    bits = np.uint8 if output.element.bytes == 1 else np.uint16
    patterns = np.arange(np.iinfo(bits).max + 1, dtype=bits)
    if output.dtype == "bool":
        return np.array([0.0, 1.0, *[np.nan] * 254])
    with np.errstate(invalid="ignore"):
        return patterns.view(output.element.numpy).astype(np.float64)
