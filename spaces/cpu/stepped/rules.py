"""The rules that refuse a schedule of kernels of steps, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.spaces.cpu.states.rules import state_rules
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.stepped.template import SteppedTemplate


def stepped_rules(template: SteppedTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    innermost = template.innermost
    return state_rules(
        template,
        Rule(
            "unrolled",
            ("unroll",),
            lambda c: c["unroll"] <= innermost,
            lambda c: f"loops are unrolled {c['unroll']} times; the longest has {innermost} points",
        ),
    )
