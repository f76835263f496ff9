"""Work and memory traffic of scans; names and units are those of ``spaces.quantities``."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.rows.traffic import row_bytes
from tilewright.spaces.cpu.scan.rules import COLUMNS, across
from tilewright.spaces.cpu.traffic import even_shares, footprints, stays_far
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.scan.template import ScanTemplate

CARRY = 6.0
"""Operations that carry the sum of a block on."""


def scan_quantities(template: ScanTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    c = widened(columns)
    view, cpu, lanes = template.view, template.cpu, template.lanes
    rows, width, sums = float(view.row_count), float(view.column_count), len(view.running)
    side, split = across(c), c["parallel_over"] == COLUMNS
    walks = np.where(split, 2.0, 1.0)
    inner = np.where(side, view.rows[-1].extent, width)
    vectors = rows * width / inner * ceil_div(inner, lanes)
    (summing, writing) = template.steps
    own = float(summing.operations + writing.operations)
    within = np.where(side, 1.0, 2.0 * log2(lanes) + 3.0 + CARRY / c["vectors"])
    operations = own + sums * (within + 1.0)
    loads, stores = float(summing.loads + writing.loads), float(writing.stores)
    state = 3.0 * sums * side * c["vectors"] * cpu.vector_bytes
    read = sum(row_bytes(view, place) for place in {*view.places.values()} if place.by_column)
    written = float(sum(output.array.bytes for output in view.outputs))
    least = float(template.workload.least_bytes)
    items, used = template.items(c), template.registers(c)
    allocated = written * (c["stores"] == "cached")
    far = bool(stays_far(cpu, least))
    again = (walks - 1.0) * rows * read
    return filled(
        {
            "flops": walks * vectors * lanes * operations,
            "useful_flops": rows * width * max(1.0, own),
            "instructions": walks * vectors * (operations + loads + 3.0 * side * sums)
            + vectors * stores
            + 8.0 * items,
            "register_bytes": template.element.bytes * lanes * vectors * (walks * loads + stores),
            "near_bytes": walks * rows * read + written,
            "middle_bytes": walks * rows * read + written,
            "main_bytes": least + (allocated + again) * (not far),
            "packing_bytes": 0.0,
            "epilogue_elements": 0.0,
            "registers": used,
            "register_fraction": used / cpu.vector_registers,
            "independent_chains": c["vectors"],
            "vector_fraction": rows * width / (vectors * lanes),
            "intensity": operations / max(1.0, loads),
            "main_loop_trips": np.where(
                side, width, np.maximum(1, width // (c["vectors"] * lanes))
            ),
            "tile_visits": walks * items,
            "synchronisations": 1.0 * (c["workers"] > 1) + split,
            "far_fraction": least / cpu.l3_bytes,
            **footprints(cpu, state, state + read + written / rows),
            **even_shares(cpu, c["workers"], np.where(split, width, items)),
        },
        c["vectors"].shape,
    )
