"""Programs divided at stages that become arrays: the part that computes each array from others.

Every stage of floating point may become an array, or be computed wherever it is read. Factors of
products that are computed from several reads are stages here, so that they may become arrays, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tilewright.spaces.derivation.algebra import constant, factors
from tilewright.spaces.derivation.cutting import BETWEEN, is_float, with_factor_apart
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.products.roles import roles_of
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.reading.inference import whole_stages
from tilewright.spaces.language.tree import Expression, Read


def with_factors(program: Program) -> Program:
    """Return the program with a stage for each factor of a product that is not one read."""
    composite = (s.name for s in program.stages if not all(map(_is_read, factors(s.body))))
    for name in list(composite):
        for side in ("left", "right"):
            found = roles_of(program, program.stage[name])
            if not isinstance(found, str) and not isinstance(getattr(found, side), Read):
                program = with_factor_apart(program, found, side) or program
    return program


def _is_read(factor: Expression) -> bool:
    return isinstance(factor, Read) or constant(factor) is not None


def possible_arrays(program: Program) -> list[str]:
    """Return the stages that may become arrays between kernels: those that others read, whose
    numbers lose nothing by it."""
    whole = {o.name for o in program.operands if o.element.is_integer}
    whole |= whole_stages(program.stages, whole)
    read = {read.name for stage in program.stages for read in stage.body.reads}
    outputs = {output.name: output for output in program.outputs}
    return [
        stage.name
        for stage in program.stages
        if stage.name in read
        and stage.name not in whole
        and is_float(program, stage)
        and (stage.name not in outputs or outputs[stage.name].dtype == BETWEEN)
    ]


def part_of(program: Program, names: Iterable[str], arrays: Collection[str]) -> Program:
    """Return the program that computes some stages from operands and ``arrays``."""
    written = dict.fromkeys(names)
    needed = _needed(program, written, arrays)
    stages = tuple(stage for stage in program.stages if stage.name in needed)
    conditions = tuple(dict.fromkeys(c for stage in stages for c in program.bounding(stage)))
    bodies = [*(stage.body for stage in stages), *conditions]
    reads = dict.fromkeys(read.name for body in bodies for read in body.reads)
    axes = {axis for stage in stages for axis in (*stage.axes, *stage.over)}
    between = [_array(program, program.stage[n]) for n in reads if n in program.stage]
    given = [Operand(a.name, a.dtype, a.shape, a.order, a.leading) for a in between]
    return Program(
        extents=tuple((axis, extent) for axis, extent in program.extents if axis in axes),
        operands=(
            *(o for o in program.operands if o.name in reads),
            *(operand for operand in given if operand.name not in needed),
        ),
        stages=stages,
        conditions=conditions,
        outputs=tuple(_array(program, program.stage[name]) for name in written),
    )


def without_maps(program: Program) -> Program:
    """Return the program with all maps that are no outputs written into their readers."""
    outputs = {output.name for output in program.outputs}
    stages = (
        replace(s, body=inlined(program, s.body, lambda each: each.name not in outputs))
        for s in program.stages
        if s.reducer or s.name in outputs
    )
    return replace(program, stages=tuple(stages))


def _needed(program: Program, names: Collection[str], arrays: Collection[str]) -> set[str]:
    """Return the stages that compute others from ``arrays``; those of a cycle are computed
    together."""
    together = {name: cycle.stages for cycle in cycles(program) for name in cycle.stages}
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name in program.stage and name not in found:
            found.add(name)
            own = {*names, *together.get(name, ())}
            reads = (read.name for read in program.stage[name].body.reads)
            waiting += [read for read in reads if read not in arrays or read in own]
    return found


def _array(program: Program, stage: Stage) -> Output:
    """Return the output that a stage is, or an array between kernels."""
    for output in program.outputs:
        if output.name == stage.name:
            return replace(output)
    shape = program.shape(stage.axes)
    return Output(stage.name, BETWEEN, shape, tuple(range(len(shape))))
