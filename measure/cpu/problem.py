"""Inputs and what they should give, in memory that the server can map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from types import TracebackType

import numpy as np

from spaces.workload import Operand, Workload

# As compare.h numbers them; types of 1 and 2 bytes are read through a table of their values.
KINDS = {"float64": 0, "float32": 1, "int32": 2}
TABLE_KINDS = {2: 3, 1: 4}
ALIGNMENT = 4096
# These 16 bits, repeated, are not a number in every floating-point type of 2 bytes and more.
# Guards and workspaces are filled with another such pattern, 0xffff.
NOT_A_NUMBER = 0xFFF5


class Problem:
    """Inputs of a workload by operand name, and the ``expected`` output in float64 or int64.

    ``text`` describes it to the server (see plan.c), which inherits ``descriptor``: an anonymous
    file that goes when its last user does.
    """

    def __init__(
        self, workload: Workload, inputs: Mapping[str, np.ndarray], expected: np.ndarray
    ) -> None:
        output = workload.output
        operands = (*workload.inputs, *workload.epilogue_inputs)
        arrays = [in_memory_order(inputs[operand.name], operand) for operand in operands]
        arrays.append(in_memory_order(expected, output).astype(np.float64))
        arrays.append(_values_of_bit_patterns(output))
        self._file = os.fdopen(os.memfd_create("tilewright"), "w+b")
        offsets, size = _store(arrays, self.descriptor)
        relative, absolute = workload.tolerance
        poison = 0x7F7F if output.element.is_integer else NOT_A_NUMBER
        kind = KINDS.get(output.dtype, TABLE_KINDS.get(output.element.bytes, -1))
        lines = [f"{self.descriptor} {size}", str(len(operands))]
        for operand, offset in zip(operands, offsets, strict=False):
            lines.append(f"{offset} {operand.bytes} {operand.name}")
        lines.append(
            f"{offsets[-2]} {offsets[-1]} {kind} {output.size} {output.bytes} "
            f"{relative!r} {absolute!r} {poison} {output.name}"
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


def in_memory_order(values: np.ndarray, operand: Operand) -> np.ndarray:
    """The elements of an array of the operand's shape as they lie in memory, one-dimensional."""
    return np.ascontiguousarray(values.transpose(operand.order)).reshape(-1)


def index_of(position: int, operand: Operand) -> tuple[int, ...]:
    """The index of the element at ``position`` in memory."""
    remaining, index = position, [0] * len(operand.shape)
    for dimension in operand.order:
        index[dimension], remaining = divmod(remaining, operand.strides[dimension])
    return tuple(index)


def _values_of_bit_patterns(output: Operand) -> np.ndarray:
    if output.dtype in KINDS:
        return np.zeros(0)
    bits = np.uint8 if output.element.bytes == 1 else np.uint16
    patterns = np.arange(np.iinfo(bits).max + 1, dtype=bits)
    with np.errstate(invalid="ignore"):
        return patterns.view(output.element.numpy).astype(np.float64)


def _store(arrays: list[np.ndarray], descriptor: int) -> tuple[list[int], int]:
    """Write the arrays one after the other; their offsets, and the file's size."""
    offsets, size = [], 0
    for array in arrays:
        offsets.append(size)
        size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    os.ftruncate(descriptor, size)
    with mmap.mmap(descriptor, size) as memory:
        whole = np.frombuffer(memory, np.uint8)
        for array, offset in zip(arrays, offsets, strict=True):
            whole[offset : offset + array.nbytes] = array.view(np.uint8)
        del whole
    return offsets, size
