"""The rules that refuse a schedule of ranges on a GPU, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.cuda.occupancy import SECTOR
from tilewright.spaces.cuda.ragged.sizes import ROWS
from tilewright.spaces.cuda.target import VECTOR_BYTES, WARP
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cuda.ragged.template import CudaRagged

MOST_LOADS = 32
"""The most elements that a thread loads of one array before it uses the first."""
LEAST_AT_ONCE = 8
"""Entries that a team may always have at a time, however short rows are."""
MOST_WORKSPACE = 1 << 31
COLUMNS = ("column_threads", "vector", "vectors")
TEAM = ("column_threads", "entry_threads")
GRID = (*TEAM, "threads", "parallel_over", "team_items")


def ragged_rules(template: CudaRagged) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (*_team_rules(template), *_thread_rules(template), *_grid_rules(template))


def _team_rules(template: CudaRagged) -> list[Rule]:
    view, sizes, bytes = template.view, template.sizes, template.element_bytes
    most = max(template.column_extents, default=1)
    least = min(SECTOR // bytes, max(template.lane_extents, default=1))
    mean = view.entries / view.rows if view.has_rows else view.entries
    at_once = max(LEAST_AT_ONCE, 4 * mean)
    return [
        Rule(
            "team",
            TEAM,
            lambda c: sizes(c).team <= WARP,
            lambda c: f"a team of {sizes(c).team} threads is more than a warp: {WARP}",
        ),
        Rule(
            "idle_columns",
            COLUMNS,
            lambda c: (sizes(c).columns < 2 * most) | (sizes(c).columns == 1),
            lambda c: f"a team of {sizes(c).columns} columns; rows have {most}",
        ),
        Rule(
            "narrow",
            COLUMNS,
            lambda c: sizes(c).columns >= least,
            lambda c: (
                f"{sizes(c).columns} columns at a time are less than memory moves at once; "
                f"allowed: {least} or more"
            ),
        ),
        Rule(
            "idle_groups",
            ("entry_threads", "unroll"),
            lambda c: (c["entry_threads"] * c["unroll"] <= at_once) | (c["unroll"] == 1),
            lambda c: (
                f"{c['entry_threads']} groups of {c['unroll']} entries at a time; rows have "
                f"{mean:.1f} on average"
            ),
        ),
    ]


def _thread_rules(template: CudaRagged) -> list[Rule]:
    target, sizes = template.cuda, template.sizes
    widest = VECTOR_BYTES // template.element_bytes

    def room(c: Any) -> Any:
        share = target.registers_per_multiprocessor // c["threads"] // 8 * 8
        return np.minimum(target.registers_per_thread, share)

    return [
        Rule(
            "vector_width",
            ("vector",),
            lambda c: c["vector"] <= widest,
            lambda c: f"{c['vector']} elements are more than a thread moves at once: {widest}",
        ),
        Rule(
            "loads",
            ("vector", "vectors", "unroll"),
            lambda c: sizes(c).accumulators * c["unroll"] <= MOST_LOADS,
            lambda c: (
                f"a thread would load {sizes(c).accumulators * c['unroll']} elements at a time; "
                f"allowed: {MOST_LOADS}"
            ),
        ),
        Rule(
            "registers",
            ("vector", "vectors", "unroll", "threads"),
            lambda c: sizes(c).registers <= room(c),
            lambda c: (
                f"a thread takes {sizes(c).registers} registers; {c['threads']} threads leave it "
                f"{room(c)}"
            ),
        ),
    ]


def _grid_rules(template: CudaRagged) -> list[Rule]:
    view, sizes = template.view, template.sizes
    (least, *_) = template.item_counts
    return [
        Rule(
            "split_groups",
            ("parallel_over", "entry_threads"),
            lambda c: (c["parallel_over"] == ROWS) | (c["entry_threads"] == 1),
            lambda c: (
                f"{c['entry_threads']} groups cannot share the entries of a team, for rows end "
                "anywhere among them"
            ),
        ),
        Rule(
            "needless_items",
            ("parallel_over", "team_items"),
            lambda c: (
                (c["parallel_over"] != ROWS) | (c["team_items"] == least) | (not view.has_rows)
            ),
            lambda c: f"{c['team_items']} rows and entries; teams of whole rows have one each",
        ),
        Rule(
            "workspace",
            GRID,
            lambda c: sizes(c).workspace_bytes <= MOST_WORKSPACE,
            lambda c: f"{sizes(c).workspace_bytes} bytes of workspace; allowed: {MOST_WORKSPACE}",
        ),
    ]
