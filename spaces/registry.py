"""Which templates serve a workload on a target."""

from __future__ import annotations

from spaces.errors import InputError
from spaces.space import Space
from spaces.target import Target
from spaces.template import Template
from spaces.workload import Workload


def templates_for(target: Target) -> tuple[type[Template], ...]:
    """All templates there are for a kind of target."""
    if target.kind == "cpu":
        from spaces.cpu.templates import TEMPLATES

        return TEMPLATES
    from spaces.cuda.templates import TEMPLATES as CUDA_TEMPLATES

    return CUDA_TEMPLATES


def space_for(workload: Workload, target: Target) -> Space:
    """The space of all templates that serve ``workload`` on ``target``.

    Raises :class:`InputError` with every template's reason where none does.
    """
    templates, reasons = [], []
    for template in templates_for(target):
        reason = template.refuses(workload, target)
        if reason is None:
            templates.append(template(workload, target))
        else:
            reasons.append(f"{template.name}: {reason}")
    if not templates:
        raise InputError(f"no template serves {workload} on {target.summary}: {'; '.join(reasons)}")
    return Space(workload, target, templates)
