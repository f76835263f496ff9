"""Sizes of a product with packed codes that stream through rings, and what its blocks take.

They are integers, or NumPy arrays of them, one for each schedule of a population.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.last_to_come import TICKET
from tilewright.spaces.cuda.blocks.segment_list import list_bytes
from tilewright.spaces.cuda.low_bit.pairs import PairDecoding
from tilewright.spaces.cuda.low_bit.sizes import COLUMNS, FLOAT, CodedSizes
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.products.view import Segments
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS, tile_bytes

BARRIER = 8
APART = 4
"""Floats between rows of sums, so that lanes of a warp meet all banks."""
MOST_RUN = 8
"""Stages of a group that a team takes one after the other at most: a power of two."""
SPARE = 24
"""Registers of a thread beside its sums, words and activations."""


@dataclass(frozen=True)
class RingSizes(CodedSizes):
    """The cut on a GPU of ``multiprocessors``, with codes decoded by ``pairs``.

    Tiles of codes along the columns are shared out evenly among blocks, one of a multiprocessor.
    Teams of ``warp_columns`` warps share a ring, and take turns along the depth; a stage of the
    ring has ``stage_depth`` tiles along the depth. A block with more tiles than its warps hold sums
    of passes over the depth several times. With ``raised`` sums, zero points and what codes are
    raised by are subtracted of sums instead of codes.

    Where rows come in segments, a block takes tiles of them in turns: each is cut from one segment
    and has columns for one pass.
    """

    multiprocessors: int
    pairs: PairDecoding
    raised: bool

    # -- blocks ------------------------------------------------------------------------------------

    @property
    def segments(self) -> Segments | None:
        """The segments of rows, if there are any."""
        return self.product.segments

    @property
    def blocks_per_sm(self) -> Any:
        """Blocks that a multiprocessor holds at a time."""
        return self.values.get("blocks_per_sm", 1)

    @property
    def row_blocks(self) -> Any:
        """Tiles along the rows; with segments as many as there can be."""
        if self.segments is None:
            return super().row_blocks
        count = self.product.row_count
        return np.minimum(count // self.rows + self.segments.count, count)

    @property
    def blocks(self) -> Any:
        """Blocks of the grid."""
        if self.segments is None:
            return super().blocks
        held = self.multiprocessors * self.blocks_per_sm
        return np.minimum(self.row_blocks * self.column_blocks, held)

    @property
    def visits(self) -> Any:
        """Passes of all blocks; with segments those of rows as they are drawn."""
        if self.segments is None:
            return self.blocks * self.passes
        return self.segments.tiles(self.rows) * self.column_blocks

    @property
    def column_blocks(self) -> Any:
        """Blocks along the columns."""
        if self.segments is not None:
            return ceil_div(self.tiles, self.block_tiles)
        shared = self.row_blocks * self.values["splits"]
        return np.clip(self.multiprocessors // shared, 1, self.tiles)

    @property
    def most_tiles(self) -> Any:
        """Tiles of codes along the columns of a block, at most."""
        return ceil_div(self.tiles, self.column_blocks)

    @property
    def passes(self) -> Any:
        """Times that a block walks along the depth."""
        return ceil_div(self.most_tiles, self.block_tiles)

    @property
    def whole_stages(self) -> Any:
        """Stages along the depth."""
        return self.deep // self.values["stage_depth"]

    @property
    def share(self) -> Any:
        """Stages along the depth of a block."""
        return ceil_div(self.whole_stages, self.values["splits"])

    @property
    def run(self) -> Any:
        """Stages that a team multiplies one after the other: those of a group, if teams then have
        as few stages as without."""
        group, teams = self.product.group // self.depth, self.values["warp_depth"]
        run = np.gcd(np.gcd(np.maximum(group, 1), self.share), self.whole_stages)
        run = np.where(self.shared_values > 0, np.minimum(run, MOST_RUN), 1)
        same = ceil_div(self.share // run, teams) * run == ceil_div(self.share, teams)
        return np.where(same & (self.whole_stages % run == 0), run, 1)

    # -- parts of a stage --------------------------------------------------------------------------

    @property
    def depth(self) -> Any:
        """Depth of a stage."""
        return self.values["stage_depth"] * DEPTH

    @property
    def part_depth(self) -> Any:
        """Depth of a part of a stage, which has zero points and scales of its own."""
        return np.minimum(self.product.group, self.depth) if self.is_grouped else self.depth

    @cached_property
    def known_zero(self) -> float | None:
        """The zero point, if it is a number; 0 if there is none."""
        return self.pairs.decoding.zero if self.product.zero is not None else 0.0

    @property
    def shared_values(self) -> Any:
        """Values of each column that a part has in shared memory: zero point and scale."""
        grouped_scale = self.product.scale is not None and self.is_grouped
        scale = np.where(self.late, grouped_scale, self.product.scale is not None)
        return (self.known_zero is None) + scale * 1

    @property
    def apart(self) -> Any:
        """Tell whether sums of a part are kept apart until something is subtracted of them, or
        their scale multiplies them."""
        return self.late & self.is_grouped | self.raised

    @property
    def on_warpgroups(self) -> Any:
        """Tell whether warpgroups multiply, with activations in shared memory."""
        return np.asarray(self.values.get("multiply", "mma") == "wgmma")

    @property
    def shares_fragments(self) -> Any:
        """Tell whether activations stay in registers for a whole stage, since tiles of a warp
        meet them one after the other, or what they share is computed first."""
        several = self.values["interleave"] < self.values["warp_tiles"]
        return several | self.raised

    # -- memory ------------------------------------------------------------------------------------

    @property
    def activation(self) -> int:
        """Bytes of an activation."""
        return int(dtype(self.pairs.kind).bytes)

    @property
    def has_bytes(self) -> bool:
        """Tell whether activations have 8 bits, and sums are whole numbers."""
        return self.activation == 1

    @property
    def activation_stage(self) -> Any:
        """Bytes of the activations of a stage."""
        return self.rows * self.depth * self.activation

    @property
    def code_stage(self) -> Any:
        """Bytes of the codes of a stage."""
        return self.block_tiles * self.values["stage_depth"] * tile_bytes(self.pairs.decoding.bits)

    @property
    def rings(self) -> Any:
        """Stages of all rings."""
        return self.values["warp_depth"] * self.values["stages"]

    @property
    def codes_at(self) -> Any:
        """The place of codes in shared memory, behind all activations."""
        return self.rings * self.activation_stage

    @property
    def values_at(self) -> Any:
        """The place of zero points and scales."""
        return self.codes_at + self.rings * self.code_stage

    @property
    def value_columns(self) -> Any:
        """Zero points, or scales, of a warp: those of all parts of a stage."""
        return self.depth // self.part_depth * self.values["warp_tiles"] * ROWS

    @property
    def pitch(self) -> Any:
        """Floats from a row of sums to the next."""
        return self.columns + APART

    @property
    def sum_bytes(self) -> Any:
        """Sums of all warps, which take the place of the rings."""
        return FLOAT * self.values["warp_depth"] * self.rows * self.pitch

    @property
    def barriers_at(self) -> Any:
        """The place of two barriers of each stage: one that it is full, one that it is empty."""
        warps = self.threads // WARP
        values = FLOAT * warps * self.value_columns * self.shared_values
        return np.maximum(self.values_at + values, self.sum_bytes)

    @property
    def word_at(self) -> Any:
        """The place of a block's ticket in shared memory, or of the list of segments."""
        return ceil_div(self.barriers_at + 2 * BARRIER * self.rings, TICKET) * TICKET

    @property
    def shared_bytes(self) -> Any:
        """Shared memory of a block."""
        return super().shared_bytes + list_bytes(self.segments)

    @property
    def registers(self) -> Any:
        """Registers of a thread, more or less."""
        values = self.values
        bits, each = self.pairs.decoding.bits, FLOAT * self.rows // COLUMNS
        sums = (values["warp_tiles"] + values["interleave"] * self.apart + 1) * each
        shared = np.where(self.shares_fragments, self.depth // COLUMNS, DEPTH // COLUMNS // 2)
        left = 2 * DEPTH // COLUMNS * HALVES
        fragments = np.where(self.on_warpgroups, left, self.rows // COLUMNS * shared)
        ahead = ceil_div(self.value_columns, WARP) * self.shared_values
        return SPARE + sums + fragments + values["interleave"] * bits + ahead
