"""Partition a program into kernels that run one after the other, where no single kernel computes
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.derivation.cutting import cuts, keeps_wholes, more_cuts
from tilewright.spaces.derivation.phases import Phase, phases
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.program import Output, Program
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.staged.arrays import Place
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.served import names_in_matmul, workload_of
from tilewright.spaces.workloads.workload import PROGRAM, Workload

MOST = 4
"""Kernels that a program may be cut into."""
WORTH = 0.75
"""Share of a program's points that a slow part may have, if others are to be computed apart."""
Serving = Callable[[Workload], type[Template] | str]
"""The template that computes a workload, or why there is none."""


@dataclass(frozen=True)
class Part:
    """A program, the workload that it is, and the template that serves it. Outputs that are some
    elements of a larger array have it in ``wholes``, with the number of elements before the first.
    """

    program: Program
    workload: Workload
    template: type[Template]
    wholes: tuple[tuple[Output, int], ...] = ()

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Map the workload's arrays to their names in the program."""
        return names_in_matmul(self.program) if self.workload.matmul else {}

    def place(self, array: Array) -> Place:
        """Return where one of the workload's arrays is."""
        for whole, start in self.wholes:
            if whole.name == array.name:
                return Place(whole.name, whole.bytes, start * whole.element.bytes)
        return Place(self.names.get(array.name, array.name), array.bytes)


def partition(
    program: Program,
    serving: Serving,
    narrow: bool = False,
    most: int = MOST,
    spare: type[Template] | None = None,
) -> tuple[Part, ...] | str:
    """Cut ``program`` into at most ``most`` parts, each with a template that is ``serving`` it; or
    say why that fails: the first part without a kernel. All phases of a part count as one; those
    that add nothing up may have the ``spare`` template. For ``narrow`` see
    :func:`spaces.derivation.cutting.cuts`.
    """
    whole = at_once(program, serving, spare)
    if not isinstance(whole, str):
        return whole
    reasons = [whole] if most == 1 else []
    for first, second in cuts(program, narrow) if most > 1 else ():
        begun = at_once(first, serving, spare)
        if isinstance(begun, str):
            reasons.append(begun)
            continue
        rest = partition(second, serving, narrow, most - 1, spare)
        if not isinstance(rest, str):
            return (*begun, *rest)
        reasons.append(rest)
    return reasons[0] if reasons else "there is nothing to cut"


def simplified(
    program: Program,
    serving: Serving,
    spare: type[Template],
    narrow: bool = False,
    most: int = MOST,
) -> tuple[Part, ...] | str:
    """Cut ``program`` into at most ``most`` parts, in more ways than :func:`partition` does. Some
    parts have a template that is ``serving`` them; the others use ``spare``, which serves anything
    but cycles, slowly, and must have little enough work. Returns a reason if that fails.
    """
    least, found = WORTH * _effort(program), None
    for made in (*cuts(program, narrow), *more_cuts(program)):
        if len(made) > most or not all(map(keeps_wholes, made[:-1])):
            continue
        parts = [_served(each, serving) for each in made]
        slow = [p for p, part in zip(made, parts, strict=True) if isinstance(part, str)]
        effort = sum(map(_effort, slow))
        if len(slow) < len(made) and effort < least and not any(map(cycles, slow)):
            least, found = effort, made
    if found is None:
        return "no part of it has a fast kernel that is worth the arrays between"
    left = most - len(found) + 1
    return tuple(
        part for each in found for part in _simplified_part(each, serving, spare, narrow, left)
    )


def _simplified_part(
    program: Program, serving: Serving, spare: type[Template], narrow: bool, most: int
) -> tuple[Part, ...]:
    """Return a part with a fast kernel; or what it is cut into in turn, or else a slow one."""
    whole = _served(program, serving)
    if isinstance(whole, Part):
        return (whole,)
    again = simplified(program, serving, spare, narrow, most)
    return (Part(program, workload_of(program), spare),) if isinstance(again, str) else again


def _effort(program: Program) -> int:
    """Return the points of all stages."""
    return sum(prod(program.shape((*s.axes, *s.over))) for s in program.stages)


def first_of(templates: Sequence[type[Template]], target: Target) -> Serving:
    """Return the first of some templates that does not refuse, and whose numerics are strict; else
    why the very first one does."""

    def serving(workload: Workload) -> type[Template] | str:
        reasons = []
        apart = any(array.steps for array in workload.outputs)
        for template in templates:
            if apart and not template.writes_apart:
                reasons.append(f"{template.name} writes whole arrays")
                continue
            reason = template.why_not(workload, target)
            if reason is None and template.numerics_of(workload) is Numerics.STRICT:
                return template
            reasons.append(reason or f"{template.name} needs numerics=fast")
        return reasons[0]

    return serving


def at_once(
    program: Program, serving: Serving, spare: type[Template] | None
) -> tuple[Part, ...] | str:
    """Return the program as one part, or phase by phase; or why nothing serves it."""
    whole = _served(program, serving)
    if isinstance(whole, Part):
        return (whole,)
    parts = phased(program, serving, spare)
    return whole if isinstance(parts, str) else parts


def phased(
    program: Program, serving: Serving, spare: type[Template] | None
) -> tuple[Part, ...] | str:
    """Return the phases of a program as parts, each with a template that is ``serving`` it, or
    with the ``spare`` one if it adds nothing up; or why there are none."""
    found, parts = phases(program), []
    for phase in found:
        part = _phase(program, phase, serving, spare)
        if isinstance(part, str):
            return part
        parts.append(part)
    return tuple(parts) if parts else "it is no sum of which a stride leaves most terms out"


def _phase(
    program: Program, phase: Phase, serving: Serving, spare: type[Template] | None
) -> Part | str:
    """Return the part that writes the elements of a phase, or why nothing serves it."""
    workload = Workload(PROGRAM, (), phase.program, "it writes some elements of an array")
    template = serving(workload)
    if isinstance(template, str):
        if spare is None or any(stage.reducer for stage in phase.program.stages):
            return template
        template = spare
    wholes = tuple(zip(program.outputs, phase.starts, strict=True))
    return Part(phase.program, workload, template, wholes)


def _served(program: Program, serving: Serving) -> Part | str:
    """Return the program as a part, or why nothing serves it."""
    workload = workload_of(program)
    found = serving(workload)
    if isinstance(found, str):
        return f"{', '.join(o.name for o in program.outputs)}: {found}"
    return Part(program, workload, found)
