"""Compute the allowed bounds of a program's outputs on the device: a kernel in float64 for each
stage, written from the program's own trees by the rules of :mod:`spaces.derivation.rounding`.

All stages of a program are one kernel of several launches. Large programs are judged in pieces of a
few rows, so that values between stages fit into :data:`BETWEEN`.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilewright.measure.cuda.trusted.meaning import WIDE, OperandArray, StageArray
from tilewright.measure.cuda.trusted.oracle import allowed_operand
from tilewright.measure.cuda.trusted.stages import StageKernel, Surroundings
from tilewright.measure.cuda.trusted.statements import MATHEMATICS
from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.derivation.rounding.rows import row_axis
from tilewright.spaces.derivation.rounding.signs import with_signs
from tilewright.spaces.kernel import Argument, Call, Kernel, Role, Source
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.prefixes import prefix_of
from tilewright.spaces.language.program import Program
from tilewright.spaces.workloads.array import Array

BETWEEN = 1 << 30
"""Bytes of all stages that later ones read, of one piece."""
MOST_TERMS = 1 << 40
"""Terms of sums over prefixes, of which a device adds up all of each; more take it seconds."""
ALIGNMENT = 256


def rows_operand(rows: int) -> Array:
    """Return the numbers of the rows of a piece; these rise, but for the last, which may come
    again."""
    return Array("tw.rows", "int32", (rows,), (0,))


def read_operand(operand: Array) -> Array:
    """Return the array in which a judging kernel reads an operand: the operand itself, or the
    values of one of packed codes, in the order of its shape."""
    if not operand.coded:
        return operand
    kind, dimensions = operand.element.numpy.name, len(operand.shape)
    return Array(f"tw.values.{operand.name}", kind, operand.shape, tuple(range(dimensions)))


def fits(program: Program) -> bool:
    """Tell whether a program's pieces are small enough for a device, and its prefixes few or
    short; the host judges stages that are computed step by step."""
    if cycles(program):
        return False
    axis, (along, whole) = row_axis(program), _bytes_between(program)
    small = whole + (along // program.extent[axis] if axis else 0) <= BETWEEN
    return small and _terms_of_prefixes(program) <= MOST_TERMS


def _terms_of_prefixes(program: Program) -> int:
    prefixed = (stage for stage in program.stages if prefix_of(program, stage))
    return sum(prod(program.shape((*stage.axes, *stage.over))) for stage in prefixed)


def rows_of_a_piece(program: Program) -> int | None:
    """Choose the number of rows of a piece, as many as fit; None for all of them."""
    axis, (along, whole) = row_axis(program), _bytes_between(program)
    if axis is None or along + whole <= BETWEEN:
        return None
    return max(1, (BETWEEN - whole) * program.extent[axis] // along)


def _bytes_between(program: Program) -> tuple[int, int]:
    """Return the bytes of the stages that have rows, and of the others."""
    axis, along, whole = row_axis(program), 0, 0
    for stage in program.stages:
        if _is_read(program, stage.name):
            size = WIDE * prod(program.shape(stage.axes))
            along, whole = (along + size, whole) if axis in stage.axes else (along, whole + size)
    return along, whole


def expect_program(program: Program, rows: int | None = None) -> Kernel:
    """Make ``(operands, rows, allowed)``: the allowed bounds of each output, as
    :func:`spaces.derivation.rounding.allowance.allowed` computes them. If ``rows`` are given,
    bounds of that many rows alone are written.
    """
    program = with_signs(program)
    axis = row_axis(program) if rows is not None else None
    bounds = [allowed_operand(output) for output in program.outputs]
    which = [rows_operand(rows)] if rows is not None else []
    operands = [read_operand(operand) for operand in program.operands]
    read = [Argument(array, Role.IN) for array in (*operands, *which)]
    written = [Argument(array, Role.IN_OUT if rows else Role.OUT) for array in bounds]
    given = {
        operand.name: OperandArray(array, f"in{n}")
        for n, (operand, array) in enumerate(zip(program.operands, operands, strict=True))
    }
    first = len(read)
    ends = zip(program.outputs, bounds, strict=True)
    around = Surroundings(
        program,
        dict(given),
        {output.name: (array, f"in{first + n}") for n, (output, array) in enumerate(ends)},
        _signature((*read, *written)),
        axis,
        rows or 0,
        f"in{len(operands)}",
    )
    kernels, size = _stage_kernels(around)
    entry = f"tw_expect_{program.digest}"
    launches = tuple(kernel.launch for kernel in kernels)
    source = Source("cuda", MATHEMATICS, "".join(kernel.text for kernel in kernels))
    return Kernel(source, Call(entry, (*read, *written), size, launches=launches))


def _stage_kernels(around: Surroundings) -> tuple[list[StageKernel], int]:
    """Return a kernel for each stage, and the bytes of what lies between them."""
    program, offset = around.program, 0
    kernels = []
    for number, stage in enumerate(program.stages):
        entry = f"tw_stage{number}_{program.digest}"
        kernel = StageKernel(around, stage, entry)
        if _is_read(program, stage.name):
            shape = tuple(map(around.extent, stage.axes))
            row = stage.axes.index(around.row_axis) if around.row_axis in stage.axes else None
            kept = StageArray(shape, kernel.is_integer, offset, row)
            offset += round_up(kept.bytes, ALIGNMENT)
            around = around.knowing({stage.name: kept})
        kernels.append(replace(kernel, around=around))
    return kernels, max(offset, ALIGNMENT)


def _is_read(program: Program, name: str) -> bool:
    """Tell whether another stage or a condition reads a stage."""
    expressions = (*(stage.body for stage in program.stages), *program.conditions)
    return any(read.name == name for expression in expressions for read in expression.reads)


def _signature(arguments: tuple[Argument, ...]) -> str:
    texts = [
        f"{'const ' if a.role is Role.IN else ''}{C_TYPES[a.array.dtype]} *in{n}"
        for n, a in enumerate(arguments)
    ]
    return ", ".join([*texts, "u8 *workspace"])
