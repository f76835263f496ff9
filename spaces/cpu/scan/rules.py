"""The rules that refuse a schedule of scans, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.rows.rules import LEAST_ELEMENTS, contiguous_lanes, streaming_size
from tilewright.spaces.cpu.sharing import idle_threads
from tilewright.spaces.cpu.vectors.long_sums import BLOCK
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.scan.template import ScanTemplate

ROWS, COLUMNS = "rows", "columns"
"""Values of the decisions ``lanes`` and ``parallel_over``."""
MOST_IN_FLIGHT = 16
"""The most vectors of a row that are summed up at once."""
ENOUGH_TOGETHER = 4
"""Vectors side by side that make whole cache lines, and hide the time of an addition."""
STATE_SHARE_OF_L1 = 0.5
"""The share of L1 that the sums of rows side by side may take."""


def scan_rules(template: ScanTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (*_vector_rules(template), *_worker_rules(template))


def across(c: Any) -> Any:
    """Tell whether lanes are rows."""
    return c["lanes"] == ROWS


def _vector_rules(template: ScanTemplate) -> list[Rule]:
    view, lanes, cpu = template.view, template.lanes, template.cpu
    rows = ceil_div(view.rows[-1].extent, lanes)
    columns = min(MOST_IN_FLIGHT, max(1, view.column_count // lanes))
    sums = len(view.running)
    room = STATE_SHARE_OF_L1 * cpu.l1_bytes

    def least(c: Any) -> Any:
        return np.where(across(c), min(ENOUGH_TOGETHER, rows), 1)

    def most(c: Any) -> Any:
        return np.where(across(c), 2 * rows - 1, columns)

    def state(c: Any) -> Any:
        return np.where(across(c), 3 * sums * c["vectors"] * cpu.vector_bytes, 0)

    return [
        contiguous_lanes(view, template.lane_axes),
        Rule(
            "vector_count",
            ("lanes", "vectors"),
            lambda c: (c["vectors"] >= least(c)) & (c["vectors"] <= most(c)),
            lambda c: (
                f"{c['vectors']} vectors along {c['lanes']}; allowed: {least(c)} to {most(c)}"
            ),
        ),
        Rule(
            "state_size",
            ("lanes", "vectors"),
            lambda c: (state(c) <= room) | (c["vectors"] <= ENOUGH_TOGETHER),
            lambda c: f"{state(c)} bytes of sums side by side take more than half of L1",
        ),
        Rule(
            "registers",
            ("lanes", "vectors"),
            lambda c: template.registers(c) <= cpu.vector_registers,
            lambda c: (
                f"{c['vectors']} vectors take {int(template.registers(c))} registers; there are "
                f"{cpu.vector_registers}"
            ),
        ),
        streaming_size(view, cpu.l2_bytes),
    ]


def _worker_rules(template: ScanTemplate) -> list[Rule]:
    view, threads = template.view, template.cpu.threads
    elements = float(view.row_count) * view.column_count
    busy = elements >= threads * LEAST_ELEMENTS and not view.is_chained
    blocks = view.column_count // BLOCK + 1

    def shared(c: Any) -> Any:
        return np.where(c["parallel_over"] == ROWS, template.items(c), blocks)

    return [
        idle_threads(threads, threads if busy else 1),
        Rule(
            "shares",
            ("lanes", "vectors", "parallel_over", "workers"),
            lambda c: c["workers"] <= np.maximum(1, shared(c)),
            lambda c: f"{c['workers']} workers share {int(shared(c))} parts; some would have none",
        ),
        Rule(
            "shared_columns",
            ("parallel_over", "workers"),
            lambda c: (
                (c["parallel_over"] == ROWS)
                | ((c["workers"] > 1) & (view.row_count < threads * template.lanes))
            ),
            lambda c: (
                f"{c['workers']} workers that share columns walk twice along {view.row_count} "
                "rows, which are enough for all or are one worker's"
            ),
        ),
    ]
