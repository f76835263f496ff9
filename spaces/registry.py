"""Find the templates that serve a workload on a target."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.backends import backend
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload

_REGISTERED: dict[str, dict[str, type[Template]]] = {}


def register_template(kind: str, template: type[Template]) -> None:
    """Let a template of one's own take part in every space of a kind of target, in this process.

    :class:`InputError` for an unknown kind, or a name that another template has.
    """
    known = _listed(kind)
    if known.get(template.name, template) is not template:
        raise InputError(f"there is a template {template.name!r} for {kind} already")
    _REGISTERED.setdefault(kind, {})[template.name] = template


def templates_for(target: Target) -> tuple[type[Template], ...]:
    """List all templates for a kind of target."""
    return tuple(_listed(target.kind).values())


def template_named(name: str, target: Target) -> type[Template] | None:
    """Return the template of that name for a kind of target; None if it is not known here. No other
    template is loaded."""
    return _listed(target.kind).get(name)


def _listed(kind: str) -> Mapping[str, type[Template]]:
    """Map the names of all templates for a kind of target to their classes."""
    return ChainMap(_REGISTERED.get(kind, {}), backend(kind).part("templates"))


def space_for(workload: Workload, target: Target, numerics: Numerics = Numerics.FAST) -> Space:
    """Return the space of all templates that serve ``workload`` on ``target``, as far as
    ``numerics`` allows them: ``FAST`` allows all, so that every record can be read. See
    :func:`serving` for what none serves as it is written.

    Raises :class:`InputError` with the reason that counts where none does at all.
    """
    found = serving(workload, target, numerics)
    if isinstance(found, str):
        raise InputError(f"no template serves {workload} on {target.summary}: {found}")
    return Space(
        workload, target, [template(found.workload, target) for template in found.templates]
    )


def part_of_space(
    workload: Workload,
    target: Target,
    templates: Collection[str],
    numerics: Numerics = Numerics.FAST,
) -> Space | None:
    """Return the part of :func:`space_for` that the templates of these names span; no others are
    loaded. None if none of them serves the workload as it is written, or last resorts alone do:
    then it takes all templates to tell.
    """
    named = [template for name in templates if (template := template_named(name, target))]
    found = [t for t in _allowed(named, workload, numerics) if not t.last_resort]
    found = [t for t in found if t.why_not(workload, target) is None]
    return Space(workload, target, [t(workload, target) for t in found]) if found else None


def _allowed(
    templates: Iterable[type[Template]], workload: Workload, numerics: Numerics
) -> list[type[Template]]:
    """List the templates whose kernels keep a promise about errors."""
    return [
        template
        for template in templates
        if numerics is Numerics.FAST or template.numerics_of(workload) is Numerics.STRICT
    ]


@dataclass(frozen=True)
class Served:
    """The templates that serve a workload, in the form in which they do."""

    workload: Workload
    templates: Sequence[type[Template]]


def serving(workload: Workload, target: Target, numerics: Numerics = Numerics.FAST) -> Served | str:
    """Find the templates for :func:`space_for`, or say why there are none. These are all templates
    that serve the workload as it is written; if there are none, those that serve its other form;
    else the first last resort that serves one of the two.
    """
    allowed = _allowed(templates_for(target), workload, numerics)
    forms = [workload]
    usual, last = ([t for t in allowed if t.last_resort == is_last] for is_last in (False, True))
    if found := [t for t in usual if t.why_not(workload, target) is None]:
        return Served(workload, found)
    if other := _other_form(workload):
        forms.append(other)
        if found := [t for t in usual if t.why_not(other, target) is None]:
            return Served(other, found)
    reason = None
    for template in last:
        for form in forms:
            reason = template.why_not(form, target)
            if reason is None:
                return Served(form, [template])
    stepped = not workload.matmul and bool(cycles(workload.program))
    for template in allowed:
        if (workload.coded and template.reads_codes) or (stepped and template.walks_steps):
            return template.why_not(workload, target) or "it has another form"
    return reason or "there is no template for it"


def _other_form(workload: Workload) -> Workload | None:
    """Return an equal workload of the same arrays, if there is another one."""
    from tilewright.spaces.derivation.rewriting import rewritten
    from tilewright.spaces.workloads.served import workload_of  # which asks for templates here

    made = None if workload.matmul else rewritten(workload.program)
    found = None if made is None else workload_of(made)
    return None if found is None or found.matmul else found


def refusals(workload: Workload, target: Target) -> list[tuple[type[Template], str | None]]:
    """Each template for the target's kind, and why it does not serve the workload, if so."""
    found = serving(workload, target)
    serves = () if isinstance(found, str) else found.templates
    reasons = [(template, template.why_not(workload, target)) for template in templates_for(target)]
    return [
        (template, None if template in serves else reason or "another template serves it")
        for template, reason in reasons
    ]


def note_on(template: str, target: Target) -> str:
    """Return the note for users on kernels of a template with this name; empty if there is none."""
    found = template_named(template, target)
    return "" if found is None else found.note


def numerics_of(template: str, workload: Workload, target: Target) -> Numerics:
    """Return the promise about errors that the template of that name keeps; ``STRICT`` of one that
    is not known here."""
    found = template_named(template, target)
    return Numerics.STRICT if found is None else found.numerics_of(workload)
