"""Check the rules of programs beyond their grammar: every axis bound, every read inside."""

from __future__ import annotations

from math import prod

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.bounds import Bounds
from tilewright.spaces.language.cycles import computed_of, cycles
from tilewright.spaces.language.kinds import is_integer
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.reading.expressions import MAX_DEPTH
from tilewright.spaces.language.reading.inference import entry_ranges, whole_stages
from tilewright.spaces.language.text import entry_text
from tilewright.spaces.language.tree import Binary, Expression, Read

MAX_OPERANDS = 64
MAX_POINTS = 2**62
"""Elements that a stage is computed from."""


def check(program: Program) -> None:
    """Raise :class:`InputError` for the first fault of a program."""
    if len(program.operands) > MAX_OPERANDS:
        raise InputError(f"{len(program.operands)} operands; allowed: {MAX_OPERANDS}")
    cycles(program)  # which raises for those that no steps compute
    _check_conditions(program)
    for stage in program.stages:
        _check_axes(program, stage)
        _check_size(program, stage)
        _check_reads(program, stage)
    _check_quotients(program)
    _check_magnitudes(program)
    _check_use(program)


def _check_use(program: Program) -> None:
    """Nothing is there in vain."""
    read = {read.name for stage in program.stages for read in stage.body.reads}
    read |= {read.name for condition in program.conditions for read in condition.reads}
    for operand in program.operands:
        if operand.name not in read:
            raise InputError(f"operand {operand.name!r} is declared, and never read")
    outputs = {output.name for output in program.outputs}
    for stage in program.stages:
        if stage.name not in read | outputs:
            names = ", ".join(outputs)
            raise InputError(
                f"stage {stage.name!r} is never read, and no output; outputs: {names}; "
                f"for more of them write a last line -> {stage.name}, {names}"
            )
    bounding = {read.name for condition in program.conditions for read in condition.reads}
    needed = computed_of(program.stages, outputs | bounding)
    for stage in program.stages:
        if stage.name not in needed:
            names = ", ".join(outputs)
            problem = f"stage {stage.name!r} is read by itself alone, and no output"
            raise InputError(f"{problem}; outputs: {names}")
    used = {axis for stage in program.stages for axis in (*stage.axes, *stage.over)}
    for axis in program.extent:
        if axis not in used:
            raise InputError(f"axis {axis!r} has an extent, and no stage uses it")


def _check_axes(program: Program, stage: Stage) -> None:
    known = {*stage.axes, *stage.over}
    for axis in sorted(stage.body.axes - known):
        raise InputError(
            f"axis {axis!r} of {entry_text(stage.name, stage.axes)} is neither kept nor reduced; "
            f"kept: {', '.join(stage.axes) or 'none'}; reduced: {', '.join(stage.over) or 'none'}"
        )
    for condition in program.bounding(stage):
        for axis in sorted(condition.axes - known):
            raise InputError(
                f"'where {condition}' bounds {entry_text(stage.name, stage.axes)}, which has no "
                f"axis {axis!r}; kept: {', '.join(stage.axes) or 'none'}"
            )


def _check_size(program: Program, stage: Stage) -> None:
    points = prod(program.shape((*stage.axes, *stage.over)))
    if points > MAX_POINTS:
        raise InputError(f"stage {stage.name!r} has {points} elements to compute; allowed: 2**62")
    if stage.body.levels > MAX_DEPTH:
        raise InputError(f"stage {stage.name!r} is too deeply nested; allowed: {MAX_DEPTH} levels")


def _check_reads(program: Program, stage: Stage) -> None:
    bounds = Bounds.under(program.bounding(stage), program.extent, entry_ranges(program))
    for read in stage.body.reads:
        if read.outside is None:
            _check_read(program, f"stage {stage.name!r}", read, bounds)


def _check_read(program: Program, place: str, read: Read, bounds: Bounds) -> None:
    operand = program.operand.get(read.name)
    shape = operand.shape if operand else program.shape(program.stage[read.name].axes)
    for dimension, (index, extent) in enumerate(zip(read.indices, shape, strict=True)):
        low, high = bounds.of(index)
        if low < 0 or high >= extent:
            axes = ", ".join(
                f"{a} from {bounds.axes[a][0]} to {bounds.axes[a][1]}" for a in sorted(index.axes)
            )
            raise InputError(
                f"{read} in {place}: index '{index}' of dimension {dimension} runs "
                f"from {low} to {high}{f' ({axes})' if axes else ''}; allowed: 0 to {extent - 1}, "
                f"or inside({read}, value)"
            )


def _check_quotients(program: Program) -> None:
    """``//`` and ``%`` of other numbers would jump wherever rounding decides."""
    whole = {operand.name for operand in program.operands if operand.element.is_integer}
    whole |= whole_stages(program.stages, whole)
    places = [(f"stage {stage.name!r}", stage.body) for stage in program.stages]
    places += [(f"'where {condition}'", condition) for condition in program.conditions]
    for place, node in ((place, node) for place, body in places for node in body.walk()):
        if isinstance(node, Binary) and node.operator in ("//", "%"):
            of_whole = is_integer(node.left, whole, floors=True) and is_integer(node.right, whole)
            if not of_whole or _may_be_zero(program, node.right):
                raise InputError(
                    f"{node} in {place}; allowed: {node.operator} of whole numbers by those that "
                    "are not 0, such as i % 2; of others floor(x / 2)"
                )


def _check_magnitudes(program: Program) -> None:
    """Whole numbers fit into 64 bits, and all on the way to them."""
    for node in magnitudes(program).too_large():
        raise InputError(
            f"{node} may be as large as {magnitudes(program).of(node)}; allowed: whole numbers up "
            "to 2**60, of others write float32(...)"
        )


def _may_be_zero(program: Program, divisor: Expression) -> bool:
    """Tell whether a divisor of axes and constants is 0 anywhere."""
    if divisor.reads:
        return False
    try:
        low, high = Bounds.under((), program.extent, {}).of(divisor)
    except InputError:
        return False
    return low <= 0 <= high


def _check_conditions(program: Program) -> None:
    bounds = Bounds.under(program.conditions, program.extent, entry_ranges(program))
    if bounds.empty:
        written = " and ".join(map(str, program.conditions))
        raise InputError(f"'where {written}' leaves no element for any row")
    everywhere = Bounds.under((), program.extent, entry_ranges(program))
    for condition in program.conditions:
        if not any(condition in program.bounding(stage) for stage in program.stages):
            raise InputError(f"'where {condition}' bounds no reduction: none is over its axes")
        for read in condition.reads:
            _check_read(program, f"'where {condition}'", read, everywhere)
