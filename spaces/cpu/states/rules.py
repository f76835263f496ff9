"""The rules that refuse a schedule of any kernel with a state, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.sharing import LEAST_MULTIPLY_ADDS, idle_threads
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.states.template import StateTemplate

STATE_SHARE_OF_L2 = 0.5
"""The share of L2 that a state may take, so that what passes by stays there too."""


def state_rules(template: StateTemplate, *own: Rule) -> tuple[Rule, ...]:
    """Return the rules of a template, with its ``own`` ones among them."""
    view, cpu, threads = template.view, template.cpu, template.cpu.threads
    groups = ceil_div(view.extent(view.lane), template.lanes)
    rows = view.extent(*view.rows)
    room = STATE_SHARE_OF_L2 * cpu.l2_bytes
    (fewest, *_) = next(d.values for d in template.decisions if d.name == "vectors")
    parts = rows * (groups // fewest)
    busy = template.points >= threads * LEAST_MULTIPLY_ADDS and parts >= threads
    return (
        Rule(
            "vectors_divide",
            ("vectors",),
            lambda c: groups % c["vectors"] == 0,
            lambda c: f"{c['vectors']} vectors at a time do not divide {groups}",
        ),
        *own,
        Rule(
            "state_size",
            ("vectors",),
            lambda c: (template.state_bytes(c) <= room) | (c["vectors"] == fewest),
            lambda c: f"a state of {template.state_bytes(c)} bytes takes more than half of L2",
        ),
        idle_threads(threads, threads if busy else 1),
        Rule(
            "shares",
            ("vectors", "workers"),
            lambda c: c["workers"] <= rows * (groups // c["vectors"]),
            lambda c: (
                f"{c['workers']} workers share {rows * (groups // c['vectors'])} parts; some "
                "would have none"
            ),
        ),
    )
