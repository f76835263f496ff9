"""The arrays of a kernel as the author of the program knows them.

A program that is a product of matrices is computed as ``matmul``, whose arrays are A, B and C. Its
author has other names for them, perhaps another order, and several axes where a matrix has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.served import names_in_matmul
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class Calling:
    """The arrays that are given and those that are written; ``order`` has, of each input of the
    kernel, the number of the given one that it is."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]
    order: Sequence[int]


def calling_of(workload: Workload) -> Calling:
    """Order arrays as the workload's program has them, if it was written as one; else as kernels
    do."""
    program = workload.written
    if program is workload.program:
        return Calling(workload.inputs, workload.outputs, range(len(workload.inputs)))
    names = names_in_matmul(program)
    taken = [names.get(array.name, array.name) for array in workload.inputs]
    inputs = [operand.stored for operand in program.operands if operand.name in taken]
    places = {operand.name: place for place, operand in enumerate(inputs)}
    return Calling(inputs, program.outputs, [places[name] for name in taken])
