"""Describe each feature for people: its kind, its unit, and its meaning."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.quantities import QUANTITIES

PER_FLOP = "_per_flop"
COMPRESSED = "log2(1 + n)"
DECISION = "decision"


@dataclass(frozen=True)
class Described:
    """``kind`` is what a feature tells of: the schedule's quantities, others that its template
    reports, the roofline, the workload, the target, the template, or a decision as it was made."""

    kind: str
    unit: str
    meaning: str


def describe(name: str) -> Described:
    """Return the feature called ``name``, see ``costmodel.features``."""
    kind, _, rest = name.partition(".")
    if kind == "schedule":
        return Described(kind, _schedule_unit(rest), _schedule_meaning(rest))
    if kind == "reported":
        return Described(kind, COMPRESSED, f"reported by the template: {rest}")
    if kind == "roofline":
        meaning = "estimated latency" + (", over the workload's least" if rest != "seconds" else "")
        return Described(kind, "log2 s" if rest == "seconds" else "log2", meaning)
    if kind == "workload":
        return Described(kind, "", f"of the workload: {rest}")
    if kind == "target":
        return Described(kind, COMPRESSED, f"of the target: {rest}")
    if kind == "template":
        return Described(kind, "0 or 1", f"whether the template is {rest}")
    return Described(DECISION, COMPRESSED, f"decision {rest} of template {kind}")


def _schedule_unit(name: str) -> str:
    if name.endswith(PER_FLOP):
        return "log2 per useful FLOP"
    return "share" if name.endswith(("_fraction", "_waste")) else COMPRESSED


def _schedule_meaning(name: str) -> str:
    quantity = name.removesuffix(PER_FLOP)
    if name == "epilogue_waste":
        quantity = "epilogue_elements"
    return QUANTITIES.get(quantity, quantity)
