"""The rules of kernels over ranges, each with the sentence that says why it refuses a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.sharing import LEAST_BYTES, idle_threads
from tilewright.spaces.cpu.tiles.decisions import registers
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.ragged.template import RaggedTemplate

ENOUGH_VECTORS, ENOUGH_CHAINS = 4, 8
"""Vectors that hide the time to find an entry, and sums in flight that hide that of a
multiply-add."""
ROWS, ENTRIES = "rows", "entries"
"""Values of the decision ``parallel_over``: workers share whole rows, or entries."""


def ragged_rules(template: RaggedTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (*_vector_rules(template), *_worker_rules(template))


def _vector_rules(template: RaggedTemplate) -> list[Rule]:
    cpu, lanes = template.cpu, template.lanes
    most = max((ceil_div(extent, lanes) for extent in template.lane_extents), default=1)

    alone = not template.lane_extents

    def used(c: Any) -> Any:
        """Return the vector registers of one turn: accumulators, what is read of an entry, and a
        factor."""
        return registers(c["unroll"], c["vectors"])

    return [
        Rule(
            "vector_count",
            ("vectors",),
            lambda c: c["vectors"] <= most,
            lambda c: f"there are no {c['vectors']} vectors of {lanes} lanes; at most {most}",
        ),
        Rule(
            "few_vectors",
            ("vectors",),
            lambda c: c["vectors"] >= min(most, ENOUGH_VECTORS),
            lambda c: (
                f"{c['vectors']} vectors at a time read each entry's indices more often; "
                f"allowed: {min(most, ENOUGH_VECTORS)} or more"
            ),
        ),
        Rule(
            "needless_unroll",
            ("vectors", "unroll"),
            lambda c: (c["unroll"] == 1) | (c["vectors"] * c["unroll"] <= ENOUGH_CHAINS),
            lambda c: (
                f"{c['vectors']} vectors of an entry are sums enough at a time; "
                f"{c['unroll']} entries need as many sums more"
            ),
        ),
        Rule(
            "needless_stream",
            ("unroll", "stream_prefetch"),
            lambda c: (c["stream_prefetch"] == 0) | (c["unroll"] > 1) | alone,
            lambda c: (
                f"{c['stream_prefetch']} entries ahead, each entry asks for lines that the one "
                "before it has asked for; allowed: 0 where entries are not unrolled"
            ),
        ),
        Rule(
            "registers",
            ("vectors", "unroll"),
            lambda c: used(c) <= cpu.vector_registers,
            lambda c: (
                f"{c['unroll']} entries of {c['vectors']} vectors take {used(c)} registers; "
                f"there are {cpu.vector_registers}"
            ),
        ),
    ]


def _worker_rules(template: RaggedTemplate) -> list[Rule]:
    threads, entries = template.cpu.threads, template.view.entries
    least = threads if template.workload.least_bytes >= threads * LEAST_BYTES else 1
    splittable = template.view.splittable is not None
    return [
        idle_threads(threads, least),
        Rule(
            "idle_workers",
            ("workers",),
            lambda c: c["workers"] <= entries,
            lambda c: f"{c['workers']} workers share {entries} entries; some would have none",
        ),
        Rule(
            "split_rows",
            ("parallel_over", "workers"),
            lambda c: (c["parallel_over"] == ROWS) | ((c["workers"] > 1) & splittable),
            lambda c: (
                f"{c['workers']} workers cannot share entries: "
                + ("there is one worker" if splittable else "steps of a row need all of it")
            ),
        ),
    ]
