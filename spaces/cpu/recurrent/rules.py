"""The rules that refuse a schedule of kernels with a state, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.sharing import LEAST_MULTIPLY_ADDS, idle_threads
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.recurrent.template import RecurrentTemplate

STATE_SHARE_OF_L2 = 0.5
"""The share of L2 that a state may take, so that what passes by stays there too."""


def recurrent_rules(template: RecurrentTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    view, cpu = template.view, template.cpu
    groups = ceil_div(view.extent(view.lane), template.lanes)
    extent, threads = view.extent(view.position), cpu.threads
    rows = view.extent(*view.rows)
    room = STATE_SHARE_OF_L2 * cpu.l2_bytes
    busy = template.multiply_adds >= threads * LEAST_MULTIPLY_ADDS and rows * groups >= threads
    return (
        Rule(
            "vectors_divide",
            ("vectors",),
            lambda c: groups % c["vectors"] == 0,
            lambda c: f"{c['vectors']} vectors at a time do not divide {groups}",
        ),
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
        Rule(
            "state_size",
            ("vectors",),
            lambda c: (template.state_bytes(c) <= room) | (c["vectors"] == 1),
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
