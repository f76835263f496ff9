"""Which kernels compute a program one after the other, where none computes it at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
Templates = Sequence[type[Template]]


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
    program: Program, target: Target, templates: Templates, most: int = MOST
) -> tuple[Part, ...] | str:
    """At most so many parts that compute ``program``, each served by one of ``templates``, the
    first that does; or why there are none: the first part without a kernel."""
    whole = _served(program, target, templates)
    if isinstance(whole, Part):
        return (whole,)
    reasons = [whole] if most == 1 else []
    for first, second in cuts(program) if most > 1 else ():
        begun = _served(first, target, templates)
        if isinstance(begun, str):
            reasons.append(begun)
            continue
        rest = partition(second, target, templates, most - 1)
        if not isinstance(rest, str):
            return (begun, *rest)
        reasons.append(rest)
    return reasons[0] if reasons else "there is nothing to cut"


def _served(program: Program, target: Target, templates: Templates) -> Part | str:
    """The program as a part, or why the first template does not serve it."""
    workload, reasons = workload_of(program), list[str]()
    for template in templates:
        reason = template.refuses(workload, target)
        if reason is None:
            return Part(program, workload, template)
        reasons.append(f"{', '.join(o.name for o in program.outputs)}: {reason}")
    return reasons[0]
