"""The programs that have kernels of steps on a GPU, and reasons why others have none."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.abi import FLOATS
from tilewright.spaces.cuda.stepped.tile import Points, axes_of
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.recurrent.stepping import stepping
from tilewright.spaces.derivation.recurrent.view import carried, recurrence_of
from tilewright.spaces.derivation.rounding.reductions import dtypes_of_factors
from tilewright.spaces.derivation.stepped.view import SteppedView, stepped_view
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.program import Program
from tilewright.spaces.numerics.adding import in_one_accumulator
from tilewright.spaces.workloads.workload import Workload

MOST_POINTS = 64
"""The most points of a group that a thread keeps."""
MOST_STEPS = 2**31 - 2**16
"""The most steps, which 32 bits count."""


@lru_cache(maxsize=64)
def cached_walk(program: Program) -> SteppedView:
    """Return how a program is computed step by step; :class:`InputError` says why it is not."""
    if not cycles(program):
        return stepping(recurrence_of(program))
    view = stepped_view(program, borders=True)
    if view.entries:
        raise InputError(f"{next(iter(view.entries))}, an entry of a table, chooses an operand")
    return view


def why_not_stepped(workload: Workload) -> str | None:
    """Return why a workload has no kernel of steps, in words; None if it has one."""
    program = workload.program
    if program.sums_in != "float32":
        return f"it is computed in {program.sums_in}; steps are computed in float32"
    try:
        view = cached_walk(program)
        scalar_math.prelude(view.program.functions)
    except InputError as reason:
        return str(reason)
    return _why_no_array(view) or _why_too_long(program, view) or _why_too_large(view)


def _why_no_array(view: SteppedView) -> str | None:
    for array in (*(view.program.operand[read.name] for read in view.places), *view.outputs):
        if array.dtype not in FLOATS:
            return f"{array.name} is {array.dtype}; allowed: {', '.join(FLOATS)}"
    return None


def _why_too_long(program: Program, view: SteppedView) -> str | None:
    """Return which sum has more terms than one accumulator takes in; None if none has."""
    sums = [(view.program, stage, view.extent(*stage.over)) for stage in view.stages]
    if name := carried(program):  # the state takes in a term at each step
        sums.append((program, program.stage[name], view.extent(view.position)))
    for own, stage, terms in sums:
        most = in_one_accumulator(terms, dtypes_of_factors(own, stage))
        if stage.reducer == "sum" and terms > most:
            return f"{stage.name} has {terms} terms; one accumulator takes in up to {most}"
    return None


def _why_too_large(view: SteppedView) -> str | None:
    for group in view.groups:
        points = Points(view.program.shape(axes_of(view, group)), WARP)
        if points.count > MOST_POINTS:
            most = MOST_POINTS * WARP
            return f"{group.stages[0].name} is over {points.total} points; a warp keeps {most}"
    if view.extent(view.position) > MOST_STEPS:
        return f"there are {view.extent(view.position)} steps; at most {MOST_STEPS}"
    return None
