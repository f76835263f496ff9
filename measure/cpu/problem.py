"""Inputs and what they may give, in memory that the server can map."""

from __future__ import annotations

import mmap
import os
from dataclasses import replace
from itertools import accumulate
from types import TracebackType

import numpy as np

from measure.inputs import Draw
from spaces.array import Array
from spaces.numerics.allowance import bounds_dtype

# As compare.h numbers them; other types of 1 and 2 bytes are read through a table of their values.
KINDS = {"float64": 0, "float32": 1, "int32": 2, "bfloat16": 5}
TABLE_KINDS = {2: 3, 1: 4}
ALIGNMENT = 4096
# These 16 bits, repeated, are not a number in every floating-point type of 2 bytes and more.
# Guards and workspaces are filled with another such pattern, 0xffff.
NOT_A_NUMBER = 0xFFF5


class Problem:
    """Inputs of a draw by operand name, and the least and greatest values of the output.

    ``text`` describes it to the server (see plan.c), which inherits ``descriptor``: an anonymous
    file that goes when its last user does.
    """

    def __init__(self, draw: Draw) -> None:
        workload, output = draw.workload, draw.workload.output
        operands = workload.inputs
        bounds, table = bounds_dtype(output), _values_of_bit_patterns(output)
        sizes = [operand.bytes for operand in operands]
        sizes += [output.size * bounds.bytes, output.size * bounds.bytes, table.nbytes]
        *offsets, size = accumulate((-(-s // ALIGNMENT) * ALIGNMENT for s in sizes), initial=0)
        low, high, table_offset = offsets[len(operands) :]
        self._file = os.fdopen(os.memfd_create("tilewright"), "w+b")
        os.ftruncate(self.descriptor, size)
        with mmap.mmap(self.descriptor, size) as memory:
            whole = np.frombuffer(memory, np.uint8)
            for operand, offset in zip(operands, offsets, strict=False):
                array_in(whole[offset:], operand)[...] = draw.inputs[operand.name]
            ends = replace(output, dtype=bounds.name)
            draw.allowed((array_in(whole[low:], ends), array_in(whole[high:], ends)))
            whole[table_offset : table_offset + table.nbytes] = table.view(np.uint8)
            del whole
        poison = 0x7F7F if output.element.is_integer else NOT_A_NUMBER
        kind = KINDS.get(output.dtype, TABLE_KINDS.get(output.element.bytes, -1))
        lines = [f"{self.descriptor} {size}", str(len(operands))]
        for operand, offset in zip(operands, offsets, strict=False):
            lines.append(f"{offset} {operand.bytes} {operand.name}")
        lines.append(
            f"{low} {high} {table_offset} {kind} {output.size} {output.bytes} {poison} "
            f"{output.name}"
        )
        self.text = "\n".join(lines)

    @property
    def descriptor(self) -> int:
        """Of the anonymous file."""
        return self._file.fileno()

    def __enter__(self) -> Problem:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def in_memory_order(values: np.ndarray, operand: Array) -> np.ndarray:
    """The elements of an array of the operand's shape as they lie in memory, one-dimensional."""
    return np.ascontiguousarray(values.transpose(operand.order)).reshape(-1)


def array_in(memory: np.ndarray, operand: Array) -> np.ndarray:
    """The operand's array at the start of ``memory`` (bytes), as a view."""
    flat = memory[: operand.bytes].view(operand.element.numpy)
    ordered = flat.reshape([operand.shape[dimension] for dimension in operand.order])
    return ordered.transpose(np.argsort(operand.order))


def index_of(position: int, operand: Array) -> tuple[int, ...]:
    """The index of the element at ``position`` in memory."""
    remaining, index = position, [0] * len(operand.shape)
    for dimension in operand.order:
        index[dimension], remaining = divmod(remaining, operand.strides[dimension])
    return tuple(index)


def _values_of_bit_patterns(output: Array) -> np.ndarray:
    if output.dtype in KINDS:
        return np.zeros(0)
    bits = np.uint8 if output.element.bytes == 1 else np.uint16
    patterns = np.arange(np.iinfo(bits).max + 1, dtype=bits)
    with np.errstate(invalid="ignore"):
        return patterns.view(output.element.numpy).astype(np.float64)
