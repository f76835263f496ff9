"""Work and memory traffic of chained kernels; names and units are those of ``spaces.quantities``.

Operations of a product are those of its register tiles, whole tiles at borders included; of the
chain, what is computed of each score, special functions counting for what a polynomial takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spaces.algebra.integers import ceil_div
from spaces.cpu.chained.rules import block_bytes
from spaces.cpu.rows.work import CALL
from spaces.cpu.traffic import even_shares, footprints
from spaces.derivation.chained.work import operations, share_inside
from spaces.quantities import filled
from spaces.template import Columns

if TYPE_CHECKING:
    from spaces.cpu.chained.template import ChainedTemplate


def chained_quantities(template: ChainedTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Every quantity, one float64 array each."""
    chained, cpu, lanes = template.chained, template.cpu, template.lanes
    b = template.blocks(columns)
    key, batches = chained.key.extent, float(chained.batches)
    seen = share_inside(template.computation, template.chained)
    per_batch = ceil_div(chained.row_count, b.rows)
    items = batches * per_batch
    tiles = items * np.maximum(seen * key / b.keys, 1) + 0.5 * items * (seen < 1)
    scores = tiles * b.rows * b.keys
    width = b.width * len(chained.weighings)
    chain = _operations(template)
    score_steps = scores * b.depth / (b.score_rows * b.panel)
    value_steps = scores * width / (b.value_rows * b.columns)
    multiplied = 2 * scores * (b.depth + width)
    packing = 8 * batches * key * b.depth * np.minimum(columns["workers"], per_batch)
    loads = score_steps * (b.score_rows + b.score_vectors)
    loads = loads + value_steps * (b.value_rows + b.value_vectors)
    multiplies = score_steps * b.score_rows * b.score_vectors
    multiplies = multiplies + value_steps * b.value_rows * b.value_vectors
    block = block_bytes(template, columns)
    middle = block + 4.0 * b.keys * (b.depth + width)
    passing = 4.0 * tiles * b.keys * (b.depth + width)
    least = float(template.workload.least_bytes)
    workers = columns["workers"]
    splits = columns["splits"] if "splits" in columns else np.ones_like(workers)
    visits = scores / (b.score_rows * b.panel) + tiles * b.rows / b.value_rows * ceil_div(
        max(width, 1), b.columns
    )
    quantities: dict[str, Any] = {
        "flops": multiplied + scores * chain,
        "useful_flops": float(template.workload.work),
        "instructions": loads + multiplies + scores * chain / lanes + 12 * tiles * b.rows,
        "register_bytes": 4 * lanes * (loads + 4 * scores / lanes),
        "near_bytes": passing + 4 * tiles * block,
        "middle_bytes": passing,
        "main_bytes": least + packing * (packing > cpu.l3_bytes),
        "packing_bytes": packing,
        "epilogue_elements": batches * chained.row_count * float(max(width, 1)),
        "registers": np.maximum(
            b.score_rows * b.score_vectors + b.score_vectors,
            b.value_rows * b.value_vectors + b.value_vectors,
        )
        + 1,
        "far_fraction": (least + packing / 2) / cpu.l3_bytes,
        "independent_chains": b.score_rows * b.score_vectors,
        "vector_fraction": key / (b.panels * b.panel),
        "intensity": multiplies / np.maximum(loads, 1),
        "main_loop_trips": b.depth,
        "tile_visits": visits,
        "synchronisations": (workers > 1) * (1.0 + (splits > 1)),
        **footprints(cpu, 4.0 * b.rows * (b.keys + b.depth), middle),
        **even_shares(cpu, workers, items * splits),
    }
    quantities["register_fraction"] = quantities["registers"] / cpu.vector_registers
    return filled(quantities, columns["rows"].shape)


def _operations(template: ChainedTemplate) -> float:
    """Operations for each score of the chain."""
    chained = template.chained
    bodies = [*(r.element for r in chained.scalars), *(w.weight for w in chained.weighings)]
    return float(len(bodies) + operations(chained, bodies, CALL))
