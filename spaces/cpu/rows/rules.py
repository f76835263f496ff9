"""The rules that refuse a schedule of rows, each with its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.cpu.rows.held import outputs_by_element
from tilewright.spaces.cpu.rows.work import registers
from tilewright.spaces.cpu.sharing import idle_threads
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.rows.template import RowsTemplate

LEAST_ELEMENTS = 2.0**15
"""The fewest elements of each thread, if all are to be woken."""
ROW_SHARE_OF_L2 = 0.5
"""The share of L2 that a scratch row may take, so that the row that is read stays there too."""


def row_rules(template: RowsTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (
        *_lane_rules(template),
        *_tile_rules(template),
        *_held_rules(template),
        *_worker_rules(template),
    )


def _lane_rules(template: RowsTemplate) -> list[Rule]:
    return [
        contiguous_lanes(template.rows, template.lane_axes),
        Rule(
            "rows_in_lanes",
            ("lanes", "intermediates", "prefetch"),
            lambda c: (
                (c["lanes"] == "columns")
                | ((c["intermediates"] == "again") & np.logical_not(c["prefetch"]))
            ),
            lambda c: "nothing is held or fetched ahead where lanes are rows",
        ),
    ]


def contiguous_lanes(rows: Rows, lane_axes: Sequence[str]) -> Rule:
    """Return the rule that lanes run along what most arrays are contiguous along, of ``lane_axes``:
    columns or rows."""
    outputs = (output.place for output in outputs_by_element(rows))
    places = [*(p for p in rows.places.values() if p.by_column), *outputs]
    along = {
        "columns": sum(place.columns[-1] == 1 for place in places),
        "rows": sum(place.rows[-1] == 1 for place in places),
    }
    most = max(along[lanes] for lanes in lane_axes)
    return Rule(
        "contiguous_lanes",
        ("lanes",),
        lambda c: np.where(c["lanes"] == "rows", along["rows"], along["columns"]) == most,
        lambda c: (
            f"lanes along {c['lanes']} find {along[c['lanes']]} of {len(places)} arrays "
            f"contiguous; the others find {most}"
        ),
    )


def streaming_size(rows: Rows, l2_bytes: int) -> Rule:
    """Return the rule that no outputs are streamed to memory that L2 has room for."""
    written = sum(output.array.bytes for output in outputs_by_element(rows))
    return Rule(
        "streaming_size",
        ("stores",),
        lambda c: (c["stores"] == "cached") | (written > l2_bytes),
        lambda c: (
            f"the {written} bytes written fit L2, where the next reader would find them; "
            "streaming puts them in main memory"
        ),
    )


def _tile_rules(template: RowsTemplate) -> list[Rule]:
    target, lanes, rows = template.cpu, template.lanes, template.rows

    def extent(c: Any) -> Any:
        across = c["lanes"] == "rows"
        return np.where(across, rows.rows[-1].extent, rows.columns[-1].extent)

    return [
        Rule(
            "tile_width",
            ("lanes", "unroll"),
            lambda c: (c["unroll"] == 1) | (c["unroll"] * lanes <= extent(c)),
            lambda c: (
                f"a tile of {c['unroll']} vectors of {lanes} is wider than the {extent(c)} "
                f"{c['lanes']} that lie together"
            ),
        ),
        Rule(
            "registers",
            ("lanes", "passes", "unroll"),
            lambda c: registers(template, c) <= target.vector_registers,
            lambda c: (
                f"the tile takes {int(registers(template, c))} vector registers; there are "
                f"{target.vector_registers}"
            ),
        ),
        streaming_size(rows, target.l2_bytes),
    ]


def _held_rules(template: RowsTemplate) -> list[Rule]:
    room = ROW_SHARE_OF_L2 * template.cpu.l2_bytes
    row = template.element.bytes * template.rows.column_count
    return [
        Rule(
            "held_results",
            ("passes", "intermediates"),
            lambda c: (c["intermediates"] == "again") | (c["passes"] == "plain"),
            lambda c: (
                f"{template.held} is held for the outputs, but with results that are not final "
                "in a pass with corrections"
            ),
        ),
        Rule(
            "held_size",
            ("intermediates",),
            lambda c: (c["intermediates"] != "scratch") | (row <= room),
            lambda c: f"a scratch row of {row} bytes takes more than half of L2",
        ),
        Rule(
            "held_streaming",
            ("intermediates", "stores"),
            lambda c: (c["intermediates"] != "output") | (c["stores"] == "cached"),
            lambda c: "what is held in the output is in the caches, and so are stores in its place",
        ),
    ]


def _worker_rules(template: RowsTemplate) -> list[Rule]:
    rows, threads = template.rows, template.cpu.threads
    elements = float(rows.row_count) * rows.column_count
    busy = rows.row_count >= threads and elements >= threads * LEAST_ELEMENTS
    least = threads if busy else 1
    return [
        idle_threads(threads, least),
        Rule(
            "row_share",
            ("workers",),
            lambda c: c["workers"] <= np.maximum(rows.row_count, 1),
            lambda c: f"{c['workers']} workers share {rows.row_count} rows; some would have none",
        ),
    ]
