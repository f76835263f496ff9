"""The rules that refuse a schedule of a product of placed operands, each with its sentence.

Tiles, workers and equal blocks have the rules of plain products (``spaces.cpu.blocked.rules``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.blocked.blocking import blocks_of
from tilewright.spaces.cpu.blocked.memory_rules import packed_block
from tilewright.spaces.cpu.blocked.rule_context import Cut, TileContext
from tilewright.spaces.cpu.blocked.rules import distinct, tile_rules, worker_rules
from tilewright.spaces.cpu.sharing import idle_batch_workers
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.windows.copies.patches import patches
from tilewright.spaces.cpu.windows.nest import Windows
from tilewright.spaces.template import Decision, Rule


@dataclass(frozen=True)
class _Context(TileContext):
    view: Windows

    def columns(self, pack_right: Any) -> Any:
        """Return the number of columns that tiles are cut from if the right operand is packed, or
        not."""
        packed, placed = (self.view.nest(p).column.extent for p in (True, False))
        return np.where(pack_right, packed, placed)

    def blocks(self, c: Any, bound: Any) -> Any:
        """Return the number of blocks of columns under the ``bound`` of a block."""
        width = c["tile_vectors"] * self.lanes
        tiles = ceil_div(ceil_div(self.columns(c["pack_right"]), width), c["column_workers"])
        return blocks_of(tiles, bound, width)

    def turns(self, c: Any, bound: Any) -> Any:
        """Return the turns of the depth's outermost loop in a block under its ``bound``."""
        return np.where(c["pack_right"], self._turns(True, bound), self._turns(False, bound))

    def _turns(self, packed: bool, bound: Any) -> Any:
        nest = self.view.nest(packed)
        extent = nest.depth[0].extent
        return ceil_div(extent, blocks_of(extent, bound, nest.terms_a_turn))

    def terms(self, c: Any) -> Any:
        """Return the number of terms in a block of the depth."""
        a_turn = [self.view.nest(packed).terms_a_turn for packed in (True, False)]
        return self.turns(c, c["block_depth"]) * np.where(c["pack_right"], *a_turn)


def window_rules(
    view: Windows, in_place: Windows | None, target: CpuTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template; ``in_place`` is the view whose left operand has patches."""
    values = {decision.name: np.array(decision.values) for decision in decisions}
    nest = view.nest(True)
    line = Cut(view.most_rows, nest.column.extent)
    context = _Context(line, target, values, view)
    return (
        *tile_rules(context),
        *_worker_rules(context),
        *_reach_rules(context),
        *_memory_rules(context),
        *([_patch_rule(context, in_place)] if in_place else []),
        *_identity_rules(context),
    )


def _worker_rules(context: _Context) -> list[Rule]:
    view = context.view
    nest = view.nest(True)
    work = float(nest.product_count) * nest.line_count * nest.row.extent * nest.column.extent
    tiles = ceil_div(nest.row.extent, context.values["tile_rows"][0])
    most = {
        "row_workers": nest.line_count * tiles,
        "column_workers": ceil_div(nest.column.extent, context.lanes),
        "batch_workers": nest.product_count,
    }
    rules = worker_rules(context, work * nest.terms, most)
    products = view.nest(not view.has_vectors).product_count
    return [*rules, *([idle_batch_workers(products)] if products > 1 else [])]


def _reach_rules(context: _Context) -> list[Rule]:
    view = context.view
    right = view.product.right.operand.name

    return [
        *([_dot_rule(context)] if view.has_dots else []),
        Rule(
            "right_vectors",
            ("pack_right",),
            lambda c: c["pack_right"] | view.has_vectors | view.has_dots,
            lambda c: f"{right} has no columns side by side, so it must be packed",
        ),
        Rule(
            "placed_width",
            ("pack_right", "tile_vectors"),
            lambda c: (c["tile_vectors"] - 1) * context.lanes < context.columns(c["pack_right"]),
            lambda c: (
                f"a tile of {c['tile_vectors']} vectors is wider than the "
                f"{int(context.columns(c['pack_right']))} columns of {right} in a row"
            ),
        ),
    ]


def _dot_rule(context: _Context) -> Rule:
    registers = context.target.vector_registers

    def taken(c: Any) -> Any:
        return c["tile_rows"] * (c["unroll"] + 1) + 1

    return Rule(
        "dot_registers",
        ("pack_right", "tile_rows", "unroll"),
        lambda c: c["pack_right"] | (taken(c) <= registers),
        lambda c: (
            f"dots of {c['tile_rows']} rows, {c['unroll']} vectors of sums each, take {taken(c)} "
            f"vector registers; there are {registers}"
        ),
    )


def _memory_rules(context: _Context) -> list[Rule]:
    view, target, values = context.view, context.target, context.values
    output = view.product.output

    def panel(c: Any) -> Any:
        return FLOAT * context.terms(c) * c["tile_vectors"] * context.lanes

    def block(c: Any) -> Any:
        return FLOAT * context.terms(c) * c["block_columns"]

    partial = Rule(
        "partial_sums",
        ("pack_right", "block_depth"),
        lambda c: context.terms(c) >= view.nest(True).terms,
        lambda c: (
            f"{output.dtype}{' with steps' if output.steps else ''} holds no partial sums, so all "
            "of the depth is one block"
        ),
    )
    panels = Rule(
        "l2_panel",
        ("pack_right", "tile_vectors", "block_depth"),
        lambda c: (
            np.logical_not(c["pack_right"])
            | (panel(c) <= target.l2_bytes)
            | (c["block_depth"] == values["block_depth"][0])
        ),
        lambda c: (
            f"a panel of the packed block takes {panel(c)} bytes; it must fit in L2 "
            f"({target.l2_bytes})"
        ),
    )
    return [
        panels if view.keeps_sums else partial,
        packed_block(context, "right", ("pack_right", "block_depth", "block_columns"), block),
    ]


def _patch_rule(context: _Context, view: Windows) -> Rule:
    """Return the rule that refuses patches whose lines would overlap."""
    rows = context.values["tile_rows"].tolist()
    apart = patches(view, True, 1).apart
    known = {n: (p := patches(view, True, n)).within + p.span(n) for n in rows}
    spans = np.array([known.get(n, 0) for n in range(rows[-1] + 1)])
    return Rule(
        "patch_lines",
        ("padding", "tile_rows"),
        lambda c: (
            (np.asarray(c["padding"]) == "copied")
            | (apart is None)
            | (spans[c["tile_rows"]] <= (apart or 0))
        ),
        lambda c: (
            f"{c['tile_rows']} rows read {int(spans[c['tile_rows']])} elements of a line; lines "
            f"of {view.left.factor.operand.name} are {apart} apart, so patches would overlap"
        ),
    )


def _identity_rules(context: _Context) -> list[Rule]:
    columns = ("pack_right", "tile_vectors", "column_workers")
    return [
        distinct(context, "block_depth", ("pack_right",), context.turns),
        distinct(context, "block_columns", columns, context.blocks),
        Rule(
            "one_order",
            (*columns, "block_columns", "order"),
            lambda c: (
                (np.asarray(c["order"]) == "columns_outer")
                | (c["block_columns"] > c["tile_vectors"] * context.lanes)
            ),
            lambda c: (
                f"a block of {c['block_columns']} columns is one tile wide: rows have no order"
            ),
        ),
    ]
