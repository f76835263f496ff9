"""The rules that refuse a schedule of kernels with a state, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.spaces.cpu.states.rules import state_rules
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.recurrent.template import RecurrentTemplate


def recurrent_rules(template: RecurrentTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    extent, cpu = template.view.extent(template.view.position), template.cpu
    return state_rules(
        template,
        Rule(
            "position_count",
            ("positions",),
            lambda c: c["positions"] <= extent,
            lambda c: f"{c['positions']} positions at once; there are {extent}",
        ),
        Rule(
            "registers",
            ("vectors", "positions"),
            lambda c: template.registers(c) <= cpu.vector_registers,
            lambda c: (
                f"{c['positions']} positions of {c['vectors']} vectors take "
                f"{template.registers(c)} registers; there are {cpu.vector_registers}"
            ),
        ),
    )
