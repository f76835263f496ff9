"""Which templates serve a workload on a target."""

from __future__ import annotations

from spaces.backends import backend
from spaces.errors import InputError
from spaces.numerics.mode import Numerics
from spaces.space import Space
from spaces.target import Target
from spaces.template import Template
from spaces.workloads.workload import Workload

_REGISTERED: dict[str, list[type[Template]]] = {}


def register_template(kind: str, template: type[Template]) -> None:
    """Let a template of one's own take part in every space of a kind of target, in this process.

    :class:`InputError` for an unknown kind, or a name that another template has.
    """
    known = {t.name: t for t in _templates(kind)}
    if known.get(template.name, template) is not template:
        raise InputError(f"there is a template {template.name!r} for {kind} already")
    if template.name not in known:
        _REGISTERED.setdefault(kind, []).append(template)


def templates_for(target: Target) -> tuple[type[Template], ...]:
    """All templates there are for a kind of target."""
    return _templates(target.kind)


def _templates(kind: str) -> tuple[type[Template], ...]:
    return (*backend(kind).part("templates"), *_REGISTERED.get(kind, ()))


def space_for(workload: Workload, target: Target, numerics: Numerics = Numerics.FAST) -> Space:
    """The space of all templates that serve ``workload`` on ``target``, as far as ``numerics``
    allows them: ``FAST`` allows all, so that every record can be read.

    Raises :class:`InputError` with every template's reason where none does.
    """
    templates = []
    refusals: dict[str, list[str]] = {}
    for template in templates_for(target):
        reason = template.refuses(workload, target)
        if reason is None and numerics is Numerics.STRICT:
            reason = why_not_strict(template)
        if reason is None:
            templates.append(template(workload, target))
        else:
            refusals.setdefault(reason, []).append(template.name)
    if not templates:
        reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in refusals.items())
        raise InputError(f"no template serves {workload} on {target.summary}: {reasons}")
    return Space(workload, target, templates)


def numerics_of(template: str, target: Target) -> Numerics:
    """The promise about errors that the template of that name keeps; ``STRICT`` of one that is not
    known here."""
    known = {each.name: each.numerics for each in templates_for(target)}
    return known.get(template, Numerics.STRICT)


def why_not_strict(template: type[Template]) -> str | None:
    """Why ``numerics="strict"`` does not allow a template, in words; None if it does."""
    return "needs numerics=fast" if template.numerics is Numerics.FAST else None
