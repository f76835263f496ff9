"""Which kernels compute a program one after the other, where none computes it at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.derivation.cutting import cuts
from spaces.language.program import Program
from spaces.target import Target
from spaces.template import Template
from spaces.workloads.array import Array
from spaces.workloads.served import names_in_matmul, workload_of
from spaces.workloads.workload import Workload

MOST = 4
"""Kernels that a program may be cut into."""
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
