"""Programs cut in two: one computes arrays of its own, and the other one reads them.

Where no kernel computes a program at once, two may, one after the other. A cut is after the steps
of a cycle, with all else that has their axis or without it; after a reduction that others read; or
before a product of what is no operand: its factor becomes an array first, and what multiplies the
finished sum goes with it where it can. Such a factor may have the dtype of what it is multiplied
with, as tensor cores need it; :mod:`spaces.derivation.rounding.reductions` allows for that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import prod

from tilewright.spaces.derivation.algebra import ONE, product, times
from tilewright.spaces.derivation.products.roles import Roles, dtype_beside, roles_of
from tilewright.spaces.derivation.widening import widened
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.program import Entries, Operand, Output, Program, Stage
from tilewright.spaces.language.reading.inference import whole_stages
from tilewright.spaces.language.tree import AxisValue, Expression, Read

BETWEEN = "float32"
"""The dtype of arrays that one program hands to the next."""
PLACES = ("argmax", "argmin")
"""Reducers whose results are whole numbers."""
PLACE = "int32"
"""The dtype of arrays of these."""
SIDES = (("left", "right"), ("right", "left"))
"""Both factors of a product, each with the other one."""


def cuts(program: Program, narrow: bool = False) -> Iterator[tuple[Program, Program]]:
    """Yield each way to cut ``program`` into a first part and a part that uses its results. If
    ``narrow``, factors are passed on in 16 bits where they are multiplied with factors of 16 bits.
    """
    if program.computed_in != BETWEEN:
        return
    for cycle in cycles(program):
        along = [stage.name for stage in program.stages if cycle.axis in stage.axes]
        yield from _cut(program, along, {})
        yield from _cut(program, cycle.stages, {})
    for stage in program.stages:
        found = roles_of(program, stage)
        if isinstance(found, str):
            continue
        for side, other in SIDES:
            apart = with_factor_apart(program, found, side)
            if apart is not None:
                short = dtype_beside(program, getattr(found, other)) if narrow else None
                yield from _after(apart, f"{stage.name}_{side}", short or BETWEEN)
    for stage in program.stages:
        if stage.reducer:
            yield from _after(program, stage.name)


def more_cuts(program: Program) -> Iterator[tuple[Program, ...]]:
    """Yield further ways to cut a program that has no other, into two or three parts: after any
    map, after all maps of operands alone, before a reduction of elements that tables choose, after
    a stage of places (integers, also between the parts), and around conversions of narrow types.
    """
    if program.computed_in != BETWEEN:
        return
    maps = [stage for stage in program.stages if not stage.reducer]
    early = [s.name for s in maps if not any(r.name in program.stage for r in s.body.reads)]
    if len(early) > 1:
        yield from _cut(program, early, {})
    for stage in maps:
        yield from _cut(program, [stage.name], {})
    for stage in program.stages:
        if stage.reducer in PLACES:
            yield from _cut(program, [stage.name], {stage.name: PLACE})
        elif stage.reducer and _gathers(stage) and not program.bounding(stage):
            each = f"{stage.name}_each"
            if each not in {*program.stage, *program.operand}:
                yield from _cut(_with_body_apart(program, stage, each), [each], {})
    yield from _conversions_apart(program)


def _conversions_apart(program: Program) -> Iterator[tuple[Program, ...]]:
    """Yield cuts with conversions as separate parts: narrow inputs are widened first, and narrow
    outputs written last.
    """
    whole, before, after = widened(program)
    if any(_is_whole(program, stage) for stage in program.stages):
        return
    for first, rest in _cut(whole, before, {}) if before else [(None, whole)]:
        for core, last in _cut(rest, after, {}) if after else [(rest, None)]:
            found = tuple(part for part in (first, core, last) if part is not None)
            if len(found) > 1:
                yield found


def _is_whole(program: Program, stage: Stage) -> bool:
    """Tell whether a stage holds integers, which float32 might not represent."""
    known = {o.name for o in program.operands if o.element.is_integer}
    return stage.name in whole_stages(program.stages, known)


def _gathers(stage: Stage) -> bool:
    """Tell whether tables choose the elements that a stage reads."""
    return any(index.reads for read in stage.body.reads for index in read.indices)


def _with_body_apart(program: Program, stage: Stage, name: str) -> Program:
    """Return the program whose ``stage`` reduces the elements of an array that a map makes
    first."""
    axes = (*stage.axes, *stage.over)
    each = Stage(name, axes, None, (), stage.body)
    reduced = replace(stage, body=Read(name, tuple(map(AxisValue, axes))))
    at = program.stages.index(stage)
    stages = (*program.stages[:at], each, reduced, *program.stages[at + 1 :])
    return replace(program, stages=stages)


def _after(program: Program, name: str, kind: str = BETWEEN) -> Iterator[tuple[Program, Program]]:
    """Return the cut after a stage, which becomes an array of this dtype."""
    return _cut(program, [name], {name: kind})


def _cut(
    program: Program, names: Collection[str], kinds: Mapping[str, str]
) -> Iterator[tuple[Program, Program]]:
    """Yield the cut after some stages, which become arrays of these dtypes, or of :data:`BETWEEN`,
    if anything is left to be done and numbers lose nothing by it."""
    first = _needed(program, names)
    last = _needed(program, [output.name for output in program.outputs]) - first
    rest = [program.stage[name] for name in last]
    read = {r.name for stage in rest for r in stage.body.reads} & first
    as_values = {r.name for stage in rest for r in stage.body.value_reads}
    written = {output.name for output in program.outputs} & first
    places = {n for n, kind in kinds.items() if kind == PLACE}
    floats = all(is_float(program, program.stage[n]) for n in first - places)
    if rest and read <= as_values | places and floats and not read & written:
        handed_on = {n: kinds.get(n, BETWEEN) for n in read}
        yield _part(program, first, handed_on, {}), _part(program, last, {}, handed_on)


def keeps_wholes(part: Program) -> bool:
    """Tell whether integers that a part passes on or writes as floats are small enough for
    float32.
    """
    known = magnitudes(part)
    return all(
        output.element.is_integer
        or output.name not in known.whole
        or known.of_array(output.name) <= EXACT
        for output in part.outputs
    )


def _needed(program: Program, names: Collection[str]) -> set[str]:
    """Return the stages of these names, and all that they are computed of."""
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name in program.stage and name not in found:
            found.add(name)
            waiting += [read.name for read in program.stage[name].body.reads]
    return found


def is_float(program: Program, stage: Stage) -> bool:
    """Tell whether an array of floats can hold a stage: it is no index, and no reduction of
    integers.
    """
    reads = [program.operand[r.name] for r in stage.body.value_reads if r.name in program.operand]
    return stage.reducer not in PLACES and not any(
        operand.element.is_integer and (stage.reducer or operand.element.bits > 8)
        for operand in reads
    )


def _part(
    program: Program,
    names: Collection[str],
    handed_on: Mapping[str, str],
    given: Mapping[str, str],
) -> Program:
    """Return the program of some stages, which hands arrays of some dtypes on or is given them."""
    stages = tuple(stage for stage in program.stages if stage.name in names)
    conditions = tuple(dict.fromkeys(c for stage in stages for c in program.bounding(stage)))
    bodies = [*(stage.body for stage in stages), *conditions]
    reads = {read.name for body in bodies for read in body.reads}
    axes = {axis for stage in stages for axis in (*stage.axes, *stage.over)}
    arrays = [_given(program, *array) for array in _between(program, given)]
    outputs = [Output(*array) for array in _between(program, handed_on)]
    return Program(
        extents=tuple((axis, extent) for axis, extent in program.extents if axis in axes),
        operands=(*(o for o in program.operands if o.name in reads), *arrays),
        stages=stages,
        conditions=conditions,
        outputs=(*outputs, *(o for o in program.outputs if o.name in names)),
    )


def _given(
    program: Program, name: str, kind: str, shape: tuple[int, ...], order: tuple[int, ...]
) -> Operand:
    """Return a stage as an operand; places may be indices."""
    over = program.shape(program.stage[name].over)
    return Operand(name, kind, shape, order, drawn=Entries(prod(over)) if kind == PLACE else None)


def _between(
    program: Program, dtypes: Mapping[str, str]
) -> Iterator[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    """Yield the stages as arrays: their names, dtypes, shapes and orders."""
    for name, stage in program.stage.items():
        if name in dtypes:
            shape = program.shape(stage.axes)
            yield name, dtypes[name], shape, tuple(range(len(shape)))


def with_factor_apart(program: Program, found: Roles, side: str) -> Program | None:
    """Return the program with one factor of a sum of products as a stage of its own, if it is no
    operand as it is."""
    name = f"{found.stage.name}_{side}"
    if name in {*program.stage, *program.operand}:
        return None
    factor: Expression = getattr(found, side)
    if isinstance(factor, Read) and (factor.name in program.operand or not factor.value_reads):
        return None
    return _replaced(program, found, side, name)


def _replaced(program: Program, found: Roles, side: str, name: str) -> Program:
    stage, leaving = found.stage, found.leaving
    factor: Expression = getattr(found, side)
    other = found.right if side == "left" else found.left
    if leaving.axes <= factor.axes:
        factor, leaving = times(factor, leaving), ONE
    axes = tuple(axis for axis in (*stage.axes, *stage.over) if axis in factor.axes)
    apart = Stage(name, axes, None, (), factor)
    read = Read(name, tuple(map(AxisValue, axes)))
    summed = replace(stage, body=product([leaving, read, other]))
    at = program.stages.index(stage)
    stages = (*program.stages[:at], apart, summed, *program.stages[at + 1 :])
    return replace(program, stages=stages)
