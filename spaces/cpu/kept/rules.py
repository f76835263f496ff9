"""The rules that refuse a schedule along kept axes, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.kept.tiling import INNER, KEPT, MIDDLE, OUTER, REDUCED
from tilewright.spaces.cpu.sharing import LEAST_BYTES, idle_threads
from tilewright.spaces.derivation.kept.cutting import turn_rules
from tilewright.spaces.derivation.kept.tiles import segments
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.kept.template import KeptTemplate

MOST_TERMS = 512
"""The most terms that are written out, those for borders included: compilers take milliseconds for
each."""


def kept_rules(template: KeptTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (
        *_tile_rules(template),
        *_order_rules(template),
        *_memory_rules(template),
        *_worker_rules(template),
    )


def registers(c: Any) -> Any:
    """Compute the vector registers of a tile: accumulators, one row of vectors that are read, and
    one more."""
    return c["coarsening"] * c["vectors"] + c["vectors"] + 1


def terms(template: KeptTemplate, c: Any) -> Any:
    """Compute the number of terms that are written out, for all tiles that have code of their
    own."""
    taps = 1.0 * template.tiling(c).taps_written_out
    return taps * c["coarsening"] * c["vectors"] * _codes(template, c)


def _codes(template: KeptTemplate, c: Any) -> Any:
    """Compute the number of tiles that have code of their own, by their place at borders."""
    view = template.view
    vectors, turns = _values(template, "vectors"), _values(template, "coarsening")
    lane = {v: len(segments(view, view.lane, v * template.lanes)) for v in vectors}
    found = _chosen(lane, c["vectors"])
    for loop in view.kept[:-1]:
        blocks = {t: len(segments(view, loop, t)) for t in turns}
        found = found * np.where(
            c["coarsened_axis"] == loop.name, _chosen(blocks, c["coarsening"]), 1
        )
    return found


def _values(template: KeptTemplate, name: str) -> tuple[int, ...]:
    decision = next(decision for decision in template.decisions if decision.name == name)
    return tuple(map(int, decision.values))


def _chosen(table: dict[int, int], values: Any) -> Any:
    found = np.zeros(max(table) + 1)
    for value, count in table.items():
        found[value] = count
    return found[values]


def _tile_rules(template: KeptTemplate) -> list[Rule]:
    view, cpu, lanes = template.view, template.cpu, template.lanes
    most = ceil_div(view.lane.extent, lanes)

    return [
        Rule(
            "vector_count",
            ("vectors",),
            lambda c: c["vectors"] <= most,
            lambda c: f"there are no {c['vectors']} vectors of {lanes} in {view.lane.extent}",
        ),
        *turn_rules(view, "tile"),
        Rule(
            "registers",
            ("vectors", "coarsening"),
            lambda c: registers(c) <= cpu.vector_registers,
            lambda c: (
                f"a tile of {c['coarsening']} x {c['vectors']} vectors takes "
                f"{registers(c)} registers; there are {cpu.vector_registers}"
            ),
        ),
        Rule(
            "code_size",
            ("vectors", "coarsened_axis", "coarsening", "unroll"),
            lambda c: (c["unroll"] == 0) | (terms(template, c) <= MOST_TERMS),
            lambda c: (
                f"{int(terms(template, c))} terms would be written out; allowed: {MOST_TERMS}"
            ),
        ),
    ]


def _order_rules(template: KeptTemplate) -> list[Rule]:
    view, lanes = template.view, template.lanes
    others = len(view.kept) - 1
    allowed = (INNER, MIDDLE, OUTER)[: 1 + min(others, 2)] if others != 1 else (INNER, OUTER)
    return [
        Rule(
            "needless_order",
            ("vectors", "order"),
            lambda c: (
                np.isin(c["order"], allowed)
                & ((c["order"] == INNER) | (c["vectors"] * lanes < view.lane.extent))
            ),
            lambda c: f"the loop over vectors is in one place only: {c['order']} is another's",
        )
    ]


def _memory_rules(template: KeptTemplate) -> list[Rule]:
    least, l3 = template.workload.least_bytes, template.cpu.l3_bytes
    return [
        Rule(
            "needless_stream",
            ("streaming_stores",),
            lambda c: np.logical_not(c["streaming_stores"]) | (least > l3),
            lambda c: f"{least} bytes stay in L3, past which streaming would write",
        )
    ]


def _worker_rules(template: KeptTemplate) -> list[Rule]:
    view, threads = template.view, template.cpu.threads
    least = threads if template.workload.least_bytes >= threads * LEAST_BYTES else 1
    outermost = np.array([0, *(loop.extent for loop in view.taps)][:2])
    turns = int(outermost[-1])
    return [
        idle_threads(threads, least),
        Rule(
            "idle_workers",
            ("vectors", "coarsened_axis", "coarsening", "parallel_over", "workers"),
            lambda c: (
                (c["parallel_over"] == REDUCED) | (c["workers"] <= template.tiling(c).longest)
            ),
            lambda c: (
                f"{c['workers']} workers share {template.tiling(c).longest} blocks of the longest "
                "loop; some would have none"
            ),
        ),
        Rule(
            "reduced_share",
            ("unroll", "parallel_over", "workers"),
            lambda c: (
                (c["parallel_over"] == KEPT)
                | ((c["workers"] > 1) & (c["workers"] <= turns) & (c["unroll"] < len(view.taps)))
            ),
            lambda c: (
                f"{c['workers']} workers cannot share {turns} turns of the outermost loop that is "
                f"reduced over, of {len(view.taps)}, with {c['unroll']} written out"
            ),
        ),
    ]
