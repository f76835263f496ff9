"""The rules of a product about memory: what must be packed, what is worth packing, what must
fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import PAGE
from tilewright.spaces.cpu.blocked.blocking import blocks_of
from tilewright.spaces.cpu.blocked.rule_context import Context, TileContext
from tilewright.spaces.cpu.traffic import rows_without_conflict
from tilewright.spaces.template import Rule
from tilewright.spaces.workloads.packing import PANEL

ROWS_FOR_DOT = 16
"""The least rows for which packing pairs is sure to pay."""
ROWS_PER_PACKED = 512
"""The least rows of a product for which a right operand over many pages is better packed."""
COLUMNS_PER_PACKED = 512
"""The least columns that must use a packed left block: fewer do not repay the copy."""


def layout_rules(context: Context) -> list[Rule]:
    """Return the rules on what must be packed because registers cannot be filled from it in
    place."""
    product, has_dot = context.product, "dot" in context.values["multiply"]
    has_pairs = product.has_pairs(product.left)
    return [
        Rule(
            "dot",
            ("multiply",),
            lambda c: (c["multiply"] == "dot") | (not has_dot) | (product.rows < ROWS_FOR_DOT),
            lambda c: (
                f"with {product.rows} rows, multiplying term by term takes twice the instructions "
                "of a dot product of pairs"
            ),
        ),
        Rule(
            "right_vectors",
            ("multiply", "pack_right"),
            lambda c: (
                c["pack_right"]
                | product.right.packed
                | ((c["multiply"] == "fma") & (not product.right_runs_deep))
            ),
            lambda c: (
                f"{product.right.name} has no vectors along {product.column} in memory"
                f"{' of pairs' if c['multiply'] == 'dot' else ''}, so it must be packed"
            ),
        ),
        *_panel_rules(context),
        Rule(
            "left_pairs",
            ("multiply", "pack_left"),
            lambda c: c["pack_left"] | (c["multiply"] == "fma") | has_pairs,
            lambda c: (
                f"{product.left.name} has no whole pairs along {product.depth} in memory, "
                "so it must be packed"
            ),
        ),
    ]


def _panel_rules(context: Context) -> list[Rule]:
    """Return the rule that a tile begins with a panel of packed weights."""
    if not context.product.right.packed:
        return []
    return [
        Rule(
            "panels",
            ("tile_vectors",),
            lambda c: c["tile_vectors"] * context.lanes % PANEL == 0,
            lambda c: (
                f"{c['tile_vectors']} vectors of {context.lanes} elements are no whole panels of "
                f"{PANEL}, in which {context.product.right.name} is packed"
            ),
        )
    ]


def packing_rules(context: Context) -> list[Rule]:
    """Return the rules on where packing pays, and where reading in place does."""
    product = context.product
    apart = product.right.stride(product.depth) * product.right.element.bytes
    height = _rows_without_conflict(context)

    def packed_columns(c: Any) -> Any:
        width = c["tile_vectors"] * context.lanes
        tiles = ceil_div(ceil_div(product.columns, width), c["column_workers"])
        whole = blocks_of(tiles, c["block_columns"], width) == 1
        return whole | (c["block_columns"] >= COLUMNS_PER_PACKED)

    return [
        Rule(
            "left_conflicts",
            ("pack_left", "tile_rows"),
            lambda c: c["pack_left"] | (c["tile_rows"] <= height),
            lambda c: (
                f"{c['tile_rows']} rows of {product.left.name} as they lie compete for the same "
                f"sets of L1, which hold {height}"
            ),
        ),
        Rule(
            "left_reuse",
            ("pack_left", "tile_vectors", "column_workers", "block_columns"),
            lambda c: np.logical_not(c["pack_left"]) | packed_columns(c),
            lambda c: (
                f"{c['block_columns']} columns do not repay the packing of {product.left.name}; "
                f"at least {COLUMNS_PER_PACKED}, or all there are, must share a packed block"
            ),
        ),
        Rule(
            "right_pages",
            ("pack_right", "row_workers"),
            lambda c: (
                c["pack_right"]
                | (apart < PAGE)
                | (product.rows < ROWS_PER_PACKED * c["row_workers"])
            ),
            lambda c: (
                f"neighbours of {product.right.name} along {product.depth} are {apart} bytes apart,"
                f" each in a page of its own; for {product.rows} rows it is better packed"
            ),
        ),
    ]


def ahead_rules(context: Context) -> list[Rule]:
    """Return the rules on where it is of use to prefetch the right operand."""
    product, target = context.product, context.target

    def following(c: Any) -> Any:
        """Return the bytes of the next block to be packed."""
        return product.right.element.bytes * c["block_depth"] * c["block_columns"]

    return [
        Rule(
            "ahead_block",
            ("prefetch", "pack_right", "block_depth", "block_columns"),
            lambda c: (
                np.logical_not(c["prefetch"] & c["pack_right"]) | (following(c) <= target.l2_bytes)
            ),
            lambda c: (
                f"the next block of {product.right.name} takes {following(c)} bytes; to wait there "
                f"for being packed, it must fit in L2 ({target.l2_bytes})"
            ),
        ),
        Rule(
            "ahead_order",
            ("prefetch", "pack_right", "order"),
            lambda c: (
                np.logical_not(c["prefetch"])
                | c["pack_right"]
                | (np.asarray(c["order"]) == "columns_outer")
            ),
            lambda c: (
                f"with order={c['order']} the next tile reads all of the next panel of "
                f"{product.right.name}, too soon to be asked for it"
            ),
        ),
    ]


def cache_rules(context: Context) -> list[Rule]:
    """Return the rules that each loop's working set fits its cache.

    The smallest bound of a decision is always allowed, so that the space is never empty.
    """
    target, lanes, values = context.target, context.lanes, context.values

    def term(c: Any) -> Any:
        """Return the bytes of one packed term."""
        return np.where(np.asarray(c["multiply"]) == "dot", 2, 4)

    def panels(c: Any) -> Any:
        return term(c) * c["block_depth"] * (c["tile_rows"] + c["tile_vectors"] * lanes)

    return [
        Rule(
            "l2_panels",
            ("multiply", "tile_rows", "tile_vectors", "block_depth"),
            lambda c: (
                (panels(c) <= target.l2_bytes // 2) | (c["block_depth"] == values["block_depth"][0])
            ),
            lambda c: (
                f"the two panels of a tile take {panels(c)} bytes; they must fit in half of L2 "
                f"({target.l2_bytes // 2})"
            ),
        ),
        packed_block(
            context,
            "left",
            ("multiply", "pack_left", "block_depth", "block_rows"),
            lambda c: term(c) * c["block_depth"] * c["block_rows"],
        ),
        packed_block(
            context,
            "right",
            ("multiply", "pack_right", "block_depth", "block_columns"),
            lambda c: term(c) * c["block_depth"] * c["block_columns"],
        ),
    ]


def packed_block(
    context: TileContext, side: str, reads: tuple[str, ...], bytes: Callable[[Any], Any]
) -> Rule:
    """Return the rule that a packed block, of so many ``bytes``, fits its cache: L2 for the left
    operand's, L3 for the right one's.

    The last of the decisions that it ``reads`` bounds the block; its least value is always allowed.
    """
    target, bound = context.target, reads[-1]
    cache, room = ("L2", target.l2_bytes) if side == "left" else ("L3", target.l3_bytes)
    return Rule(
        f"{cache.lower()}_block",
        reads,
        lambda c: (
            np.logical_not(c[f"pack_{side}"])
            | (bytes(c) <= room)
            | (c[bound] == context.values[bound][0])
        ),
        lambda c: (
            f"the packed {side} block takes {bytes(c)} bytes; it must fit in {cache} ({room})"
        ),
    )


def _rows_without_conflict(context: Context) -> int:
    """Return how many rows of the unpacked left operand L1 holds at one depth."""
    product = context.product
    if not product.left_runs_deep:
        return product.rows
    apart = product.left.stride(product.row) * product.left.element.bytes
    return rows_without_conflict(context.target, apart)
