"""Work and memory traffic of chained kernels; names and units are those of ``spaces.quantities``.

Operations of the products are those of whole register tiles, those at borders included. Operations
of the chain are counted for each score, with a special function as the terms of a polynomial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import LINE
from tilewright.spaces.cpu.chained.blocks import Blocks
from tilewright.spaces.cpu.chained.rules import block_bytes
from tilewright.spaces.cpu.rows.work import CALL_OPERATIONS
from tilewright.spaces.cpu.traffic import even_shares, footprints
from tilewright.spaces.derivation.chained.work import operations
from tilewright.spaces.quantities import filled
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.chained.template import ChainedTemplate
    from tilewright.spaces.cpu.target import CpuTarget


def chained_quantities(template: ChainedTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    cpu, b = template.cpu, template.blocks(columns)
    passes = _Passes.of(template, b)
    quantities = _work(template, passes)
    quantities |= _memory(template, passes, columns)
    middle = block_bytes(template, columns) + 4.0 * b.keys * (
        b.depth * (1 - b.stepped) + passes.width
    )
    quantities |= footprints(cpu, 4.0 * b.rows * (b.keys + b.passing_depth), middle)
    splits = columns["splits"] if "splits" in columns else np.ones_like(columns["workers"])
    quantities |= even_shares(cpu, columns["workers"], passes.items * splits)
    quantities["synchronisations"] = (columns["workers"] > 1) * (1.0 + (splits > 1))
    quantities["register_fraction"] = quantities["registers"] / cpu.vector_registers
    return filled(quantities, columns["rows"].shape)


@dataclass(frozen=True)
class _Passes:
    """Counts of what blocks meet: ``items`` blocks of rows, ``tiles`` pairs of a block and a tile
    of keys, and ``scores`` scores, for all products.

    ``rows`` are the rows of a block in the mean, whole register tiles; ``matrices`` counts the
    matrices that rows have sums of.
    """

    blocks: Blocks
    items: Any
    tiles: Any
    scores: Any
    rows: Any
    matrices: int

    @staticmethod
    def of(template: ChainedTemplate, b: Blocks) -> _Passes:
        """Return the counts for schedules of a template."""
        chained = template.chained
        count, per_batch = chained.row_count, ceil_div(chained.row_count, b.rows)
        items = float(chained.batches) * per_batch
        tile = np.maximum(b.score_rows, b.value_rows)
        last = ceil_div(count % b.rows, tile) * tile
        whole = count // b.rows * b.rows + last
        tiles, scores = template.visited_tiles.of(b.rows, b.keys)
        met = float(chained.batches) * scores * whole / count
        tiles = float(chained.batches) * tiles
        return _Passes(b, items, tiles, met, whole / per_batch, len(chained.weighings))

    @property
    def width(self) -> int:
        """The number of columns of all sums of a row."""
        return self.blocks.width * self.matrices

    @property
    def score_steps(self) -> Any:
        """Steps of the register tiles of scores along the depth; lanes are keys, or terms of
        each."""
        b = self.blocks
        return self.scores * b.depth / (b.score_rows * b.score_vectors * b.lanes)

    @property
    def value_tiles(self) -> Any:
        """The number of register tiles along the columns of all sums; the last one may be
        narrower."""
        return self.matrices * ceil_div(self.blocks.width, self.blocks.columns)

    @property
    def value_vectors(self) -> Any:
        """The number of vectors along the columns of all sums."""
        b = self.blocks
        whole, left = b.width // b.columns, b.width % b.columns
        return self.matrices * (whole * b.value_vectors + ceil_div(left, b.lanes))

    @property
    def value_bytes(self) -> Any:
        """Bytes of the cache lines that come to L1 for one key and a register tile of sums: a tile
        of keys has more rows of matrices than stay there."""
        b = self.blocks
        whole, left = b.width // b.columns, b.width % b.columns
        return (
            4.0 * LINE * self.matrices * (whole * ceil_div(b.columns, LINE) + ceil_div(left, LINE))
        )


def _work(template: ChainedTemplate, passes: _Passes) -> dict[str, Any]:
    """Compute operations, instructions and registers."""
    b, lanes, scores = passes.blocks, template.lanes, passes.scores
    chain, chained = _operations(template), template.chained
    loads = passes.score_steps * (b.score_rows + b.score_vectors)
    loads = loads + scores * (passes.value_tiles + passes.value_vectors / b.value_rows)
    multiplies = passes.score_steps * b.score_rows * b.score_vectors
    multiplies = multiplies + scores * passes.value_vectors
    visits = scores / (b.score_rows * b.panel) * ceil_div(b.depth, b.passing_depth)
    visits = visits + passes.tiles * passes.rows / b.value_rows * passes.value_tiles
    score_registers = b.score_rows * b.score_vectors + b.score_vectors
    value_registers = b.value_rows * b.value_vectors + b.value_vectors
    return {
        "flops": 2 * scores * (b.depth + passes.width) + scores * chain,
        "useful_flops": float(template.workload.work),
        "instructions": loads
        + multiplies
        + scores * chain / lanes
        + 12 * passes.tiles * passes.rows,
        "register_bytes": 4 * lanes * (loads + 4 * scores / lanes),
        "epilogue_elements": float(chained.batches)
        * chained.row_count
        * float(max(passes.width, 1)),
        "registers": np.maximum(score_registers, value_registers) + 1,
        "independent_chains": b.score_rows * b.score_vectors,
        "vector_fraction": chained.key.extent / (b.panels * b.panel),
        "intensity": multiplies / np.maximum(loads, 1),
        "main_loop_trips": b.passing_depth,
        "tile_visits": visits,
    }


def _memory(template: ChainedTemplate, passes: _Passes, columns: Columns) -> dict[str, Any]:
    """Compute the bytes that move."""
    b, chained, cpu = passes.blocks, template.chained, template.cpu
    sharing = np.minimum(columns["workers"], ceil_div(chained.row_count, b.rows))
    keys = 4 * float(chained.batches) * chained.key.extent * b.depth
    packing = 2 * keys * sharing * (1 - b.dots)
    packing = np.where(b.stepped, keys * ceil_div(chained.row_count, b.rows), packing)
    again = np.where(
        b.stepped, (packing - keys) * (keys > cpu.l3_bytes), packing * (packing > cpu.l3_bytes)
    )
    passing = 4.0 * passes.tiles * b.keys * (b.depth + passes.width)
    least = float(template.workload.least_bytes)
    values = passes.scores / b.value_rows * passes.value_bytes
    kept = 4 * passes.tiles * block_bytes(template, columns)
    return {
        "near_bytes": passing + kept + values + _again(cpu, passes),
        "middle_bytes": passing,
        "main_bytes": least + again,
        "packing_bytes": packing,
        "far_fraction": (least + packing / 2 * (1 - b.stepped)) / cpu.l3_bytes,
    }


def _again(cpu: CpuTarget, passes: _Passes) -> Any:
    """Compute the bytes that come to L1 again for each register tile of scores, if L1 has no room
    for one tile's operands."""
    b = passes.blocks
    beyond = 4 * (b.score_rows + b.panel) * b.passing_depth > cpu.l1_bytes
    return beyond * 4.0 * passes.scores * b.depth * (1 / b.panel + 1 / b.score_rows)


def _operations(template: ChainedTemplate) -> float:
    """Return the number of operations of the chain for each score."""
    chained = template.chained
    bodies = [*(r.element for r in chained.scalars), *(w.weight for w in chained.weighings)]
    return float(len(bodies) + operations(chained, bodies, CALL_OPERATIONS))
