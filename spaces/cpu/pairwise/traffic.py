"""Work and memory traffic of pairwise kernels; names and units are those of ``spaces.quantities``.

Operations of a product are those of whole register tiles, those at borders included: a tile of keys
that some rows of a block do not see is computed for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.rows.work import CALL_OPERATIONS
from tilewright.spaces.cpu.traffic import even_shares, footprints
from tilewright.spaces.derivation.scopes import special
from tilewright.spaces.language.tree import AxisValue, Read
from tilewright.spaces.quantities import filled
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.pairwise.template import PairwiseTemplate


def pairwise_quantities(template: PairwiseTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    cpu, b, found = template.cpu, template.blocks(columns), template.pairwise
    tiles = float(found.batches) * template.visited_tiles.of(b.rows, b.keys)[0]
    pairs = tiles * _filled(found.row_count, b.rows) * _filled(found.key.extent, b.keys)
    quantities = _work(template, columns, tiles, pairs)
    quantities |= _memory(template, columns, tiles)
    near = 4.0 * (b.rows + 2 * b.keys) * max(score.depth.extent for score in found.scores)
    middle = 4.0 * b.near_floats
    quantities |= footprints(cpu, near, middle)
    splits = columns.get("splits", np.ones_like(columns["workers"]))
    quantities |= even_shares(cpu, columns["workers"], found.batches * splits)
    quantities["synchronisations"] = (columns["workers"] > 1) * (1.0 + (splits > 1))
    merged = 8.0 * found.batches * splits * sum(size for _, size in b.row_sums())
    quantities["middle_bytes"] = quantities["middle_bytes"] + merged * (splits > 1)
    quantities["register_fraction"] = quantities["registers"] / cpu.vector_registers
    return filled(quantities, columns["rows"].shape)


def _filled(extent: int, size: Any) -> Any:
    """Compute how many of ``size`` places a block or a tile fills in the mean."""
    return extent / ceil_div(extent, size)


def _work(template: PairwiseTemplate, columns: Columns, tiles: Any, pairs: Any) -> dict[str, Any]:
    """Compute operations, instructions and registers."""
    b, found, lanes = template.blocks(columns), template.pairwise, template.lanes
    depth = float(sum(score.depth.extent for score in found.scores))
    widths = [each.width.extent for each in found.sums]
    vectors = sum(ceil_div(width, lanes) for width in widths)
    passes = sum(ceil_div(width, b.columns) for width in widths)
    calls = _operations(template)
    steps = pairs * depth / (b.score_rows * b.panel)
    loads = steps * (b.score_rows + b.score_vectors) + pairs * (passes + vectors / b.sum_rows)
    multiplies = pairs * (depth / lanes + vectors)
    score = b.score_rows * b.score_vectors + b.score_vectors
    sums = b.sum_rows * b.sum_vectors + b.sum_vectors
    visits = pairs * len(found.scores) / (b.score_rows * b.panel)
    visits = visits + tiles * (b.rows + b.keys) / (2 * b.sum_rows) * passes
    keys = found.key.extent
    return {
        "flops": 2 * pairs * (depth + sum(widths)) + pairs * calls,
        "useful_flops": float(template.workload.work),
        "instructions": loads + multiplies + pairs * calls / lanes + 12 * tiles * b.rows,
        "register_bytes": 4 * lanes * (loads + 2 * b.tiles * pairs / lanes),
        "epilogue_elements": float(sum(each.output.array.size for each in found.sums)),
        "registers": np.maximum(score, sums) + 1,
        "independent_chains": np.minimum(
            b.score_rows * b.score_vectors, b.sum_rows * b.sum_vectors
        ),
        "vector_fraction": keys / (ceil_div(keys, b.panel) * b.panel),
        "intensity": multiplies / np.maximum(loads, 1),
        "main_loop_trips": depth / len(found.scores),
        "tile_visits": visits,
    }


def _memory(template: PairwiseTemplate, columns: Columns, tiles: Any) -> dict[str, Any]:
    """Compute the bytes that move."""
    b, found, cpu = template.blocks(columns), template.pairwise, template.cpu
    rows = sum(b.whole(part) for _, part in found.row_matrices)
    keys = sum(b.whole(part) for _, part in found.key_matrices)
    waiting = sum(b.whole(each.width) for each in found.sums if not each.of_key)
    passing = 4.0 * tiles * b.rows * (rows + 2 * waiting)
    copied = 4.0 * tiles * b.rows * rows + 8.0 * found.batches * found.key.extent * keys
    own = (*b.of_product(), *b.row_sums())
    product = 4.0 * sum(size for _, size in own) + 4.0 * found.row_count * rows
    least = float(template.workload.least_bytes)
    return {
        "near_bytes": passing + 8.0 * tiles * b.near_floats,
        "middle_bytes": passing,
        "main_bytes": least + passing * (product > cpu.l3_bytes),
        "packing_bytes": 2 * copied,
        "far_fraction": product / cpu.l3_bytes,
    }


def _operations(template: PairwiseTemplate) -> float:
    """Return the operations of all weights for each pair, equal ones counted once."""
    seen = set()
    total = float(len(template.pairwise.weights))
    for weight in template.pairwise.weights:
        for node in weight.values():
            if node not in seen and not isinstance(node, Read | AxisValue) and node.children:
                seen.add(node)
                inner = any(special(child) for child in node.children)
                total += CALL_OPERATIONS if special(node) and not inner else 1
    return total
