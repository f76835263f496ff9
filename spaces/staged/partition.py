"""Which kernels compute a program one after the other, where none computes it at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from spaces.derivation.cutting import cuts
from spaces.language.program import Program
from spaces.target import Target
from spaces.template import Template
from spaces.workloads.array import Array
from spaces.workloads.served import names_in_matmul, workload_of
from spaces.workloads.workload import Workload

MOST = 4
"""Kernels that a program may be cut into."""
WORTH = 0.75
"""Share of a program's points that a slow part may have, if others are to be computed apart."""
Serving = Callable[[Workload], type[Template] | str]
"""The template that computes a workload, or why there is none."""


@dataclass(frozen=True)
class Part:
    """A program, the workload that it is, and the template that serves it."""

    program: Program
    workload: Workload
    template: type[Template]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What the program calls each of the workload's arrays."""
        return names_in_matmul(self.program)

    def named(self, array: Array) -> str:
        """What the program calls one of the workload's arrays."""
        return self.names.get(array.name, array.name)


def partition(
    program: Program, serving: Serving, narrow: bool = False, most: int = MOST
) -> tuple[Part, ...] | str:
    """At most so many parts that compute ``program``, each with a template that is ``serving`` it;
    or why there are none: the first part without a kernel. For ``narrow`` see
    :func:`spaces.derivation.cutting.cuts`."""
    whole = _served(program, serving)
    if isinstance(whole, Part):
        return (whole,)
    reasons = [whole] if most == 1 else []
    for first, second in cuts(program, narrow) if most > 1 else ():
        begun = _served(first, serving)
        if isinstance(begun, str):
            reasons.append(begun)
            continue
        rest = partition(second, serving, narrow, most - 1)
        if not isinstance(rest, str):
            return (begun, *rest)
        reasons.append(rest)
    return reasons[0] if reasons else "there is nothing to cut"


def eased(
    program: Program,
    serving: Serving,
    spare: type[Template],
    narrow: bool = False,
    most: int = MOST,
) -> tuple[Part, ...] | str:
    """At most so many parts that compute ``program``, one of them by the template ``spare``, which
    serves anything, slowly, and all others by one that is ``serving`` them. The part for ``spare``
    has little enough to do to be worth it; or why there are none."""
    least, found = WORTH * _effort(program), None
    for first, second in cuts(program, narrow) if most > 1 else ():
        for slow, fast in ((second, first), (first, second)):
            if _effort(slow) < least and isinstance(_served(fast, serving), Part):
                least, found = _effort(slow), (first, second, slow)
    if found is None:
        return "no part of it has a fast kernel that is worth the arrays between"
    first, second, slow = found
    again = eased(slow, serving, spare, narrow, most - 1)
    left = (Part(slow, workload_of(slow), spare),) if isinstance(again, str) else again
    other = _served(second if slow is first else first, serving)
    assert isinstance(other, Part)
    return (*left, other) if slow is first else (other, *left)


def _effort(program: Program) -> int:
    """The points of all stages."""
    return sum(prod(program.shape((*s.axes, *s.over))) for s in program.stages)


def first_of(templates: Sequence[type[Template]], target: Target) -> Serving:
    """The first of some templates that does not refuse; else why the very first one does."""

    def serving(workload: Workload) -> type[Template] | str:
        reasons = []
        for template in templates:
            reason = template.refuses(workload, target)
            if reason is None:
                return template
            reasons.append(reason)
        return reasons[0]

    return serving


def _served(program: Program, serving: Serving) -> Part | str:
    """The program as a part, or why nothing serves it."""
    workload = workload_of(program)
    found = serving(workload)
    if isinstance(found, str):
        return f"{', '.join(o.name for o in program.outputs)}: {found}"
    return Part(program, workload, found)
