"""The rules that refuse a schedule of a thin product, each with its sentence."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.sharing import (
    LEAST_MULTIPLY_ADDS,
    enough_threads,
    idle_batch_workers,
    idle_threads,
)
from tilewright.spaces.cpu.thin.blocking import CHUNK_UNIT
from tilewright.spaces.cpu.traffic import rows_without_conflict
from tilewright.spaces.template import Rule
from tilewright.spaces.workloads.packing import PANEL
from tilewright.spaces.workloads.product import Product

if TYPE_CHECKING:
    from tilewright.spaces.cpu.thin.template import Thin

LEAST_CHAINS = 4
"""The least independent accumulations: with fewer, even a memory-bound loop waits for its FMAs."""
BUSY_CHAINS = 8
"""The least independent accumulations of a loop with several rows' work for each vector that it
reads."""
STREAMS = 8
"""Rows of the right operand at a time that hardware is sure to prefetch by itself."""
LEAST_DEPTH = 32
"""The least terms of a block: with fewer, products of several rows wait for their sums."""
TERMS = 1024
"""The most terms that one accumulator adds up before partial sums are joined."""
REUSE = 0.75
"""The share of the most multiply-adds per load that a tile of dot products must reach."""


def thin_rules(template: Thin) -> tuple[Rule, ...]:
    """Return all rules of a thin template."""
    return (
        *_tile_rules(template),
        *([] if template.packed else _prefetch_rules(template)),
        *([] if template.dots or template.packed else _stream_rules(template)),
        *(_sum_rules(template) if template.dots else []),
        *_worker_rules(template),
        *_packing_rules(template),
        *(_distinct(template, d.name) for d in template.decisions if d.name in _EXTENT),
    )


def _sum_rules(template: Thin) -> list[Rule]:
    """Return the rule that the accumulators of a dot product take no more than :data:`TERMS` terms
    each."""
    most = template.lanes * TERMS
    longest = max(int(d.values[-1]) for d in template.decisions if d.name == "block_depth")
    if most >= min(template.product.terms, longest):
        return []
    return [
        Rule(
            "long_sums",
            ("block_depth", "unroll"),
            lambda c: c["block_depth"] <= most * c["unroll"],
            lambda c: (
                f"a block of {c['block_depth']} terms has more than {TERMS} for each of "
                f"{template.lanes * c['unroll']} accumulators"
            ),
        )
    ]


def _tile_reads(template: Thin) -> tuple[str, ...]:
    return ("tile_rows", *(("tile_columns", "unroll") if template.dots else ("tile_vectors",)))


def _tile_rules(template: Thin) -> list[Rule]:
    target, reads = template.cpu, _tile_reads(template)
    widest = round_up(template.product.columns, PANEL if template.packed else template.lanes)
    tiles = _tiles(template, widest)
    most = max(int(template.chains(tile)) for tile in tiles)
    chains = min(LEAST_CHAINS if template.few else BUSY_CHAINS, most)
    busy = [tile for tile in tiles if template.chains(tile) >= chains]
    return [
        Rule(
            "registers",
            reads,
            lambda c: template.registers(c) <= target.vector_registers,
            lambda c: (
                f"the tile takes {template.registers(c)} vector registers; there are "
                f"{target.vector_registers}"
            ),
        ),
        Rule(
            "latency",
            reads,
            lambda c: template.chains(c) >= chains,
            lambda c: (
                f"{template.chains(c)} accumulators do not hide the latency of an FMA; at least "
                f"{chains} are needed"
            ),
        ),
        Rule(
            "tile_width",
            reads[1:2],
            lambda c: template.tile_columns(c) <= widest,
            lambda c: (
                f"a tile of {template.tile_columns(c)} columns is wider than the product's "
                f"{template.product.columns}"
            ),
        ),
        _dots_reuse(busy) if template.dots else _stream_reuse(template),
    ]


def _tiles(template: Thin, widest: int) -> list[dict[str, Any]]:
    """Return the tiles that fit the registers and the product."""
    reads = _tile_reads(template)
    choices = {d.name: d.values for d in template.decisions}
    tiles = (
        dict(zip(reads, values, strict=True)) for values in product(*(choices[r] for r in reads))
    )
    return [
        tile
        for tile in tiles
        if template.registers(tile) <= template.cpu.vector_registers
        and template.tile_columns(tile) <= widest
    ]


def _stream_reuse(template: Thin) -> Rule:
    """Return the rule that there are as few row tiles as leave room for two vectors a row, or for a
    panel: each row tile reads the right operand again."""
    thin = template.product
    vectors = max(2, PANEL // template.lanes) if template.packed else 2
    most = ceil_div(thin.rows, (template.cpu.vector_registers - 3) // vectors)
    return Rule(
        "row_tiles",
        ("tile_rows",),
        lambda c: ceil_div(thin.rows, c["tile_rows"]) <= most,
        lambda c: (
            f"tiles of {c['tile_rows']} rows would read {thin.right.name} "
            f"{ceil_div(thin.rows, c['tile_rows'])} times; with taller ones {most} would do"
        ),
    )


def _dots_reuse(tiles: list[dict[str, Any]]) -> Rule:
    """Return the rule that tiles of dot products, which load both operands, are nearly square."""

    def multiplies(c: Any) -> Any:
        """Return the multiply-adds per load."""
        return c["tile_rows"] * c["tile_columns"] / (c["tile_rows"] + c["tile_columns"])

    least = REUSE * max(multiplies(tile) for tile in tiles)
    return Rule(
        "reuse",
        ("tile_rows", "tile_columns"),
        lambda c: multiplies(c) >= least,
        lambda c: (
            f"a tile of {c['tile_rows']} x {c['tile_columns']} does {multiplies(c):.2f} "
            f"multiply-adds a load; others do {least:.2f} and more"
        ),
    )


def _prefetch_rules(template: Thin) -> list[Rule]:
    """Return the rule that software prefetches what hardware does not: many rows or columns at a
    time."""
    thin, across = template.product, "tile_columns" if template.dots else "block_depth"
    if thin.right.bytes <= template.cpu.l2_bytes:
        return []
    most = STREAMS if template.few or not template.dots else 0
    return [
        Rule(
            "prefetch_streams",
            (across, "prefetch"),
            lambda c: (c[across] <= most) | (c["prefetch"] > 0),
            lambda c: (
                f"{across}={c[across]} parts of {thin.right.name} at a time are more than hardware "
                "fetches ahead, so software must"
            ),
        )
    ]


def _stream_rules(template: Thin) -> list[Rule]:
    thin = template.product
    few = template.few
    least = 1 if few else LEAST_DEPTH
    most = STREAMS if few else 2**30
    return [
        Rule(
            "block_depth",
            ("block_depth",),
            lambda c: (
                ((c["block_depth"] >= least) | (c["block_depth"] >= thin.terms))
                & (c["block_depth"] <= most)
            ),
            lambda c: (
                f"for {thin.rows} rows a block of {c['block_depth']} terms "
                + (f"is more than {most} streams" if few else f"does not repay a visit; {least} do")
            ),
        ),
    ]


def _worker_rules(template: Thin) -> list[Rule]:
    thin, threads = template.product, template.cpu.threads
    work = float(thin.rows) * thin.columns * thin.terms * thin.batches
    least = threads if work >= threads * LEAST_MULTIPLY_ADDS else 1
    sharing = "batch_workers" if thin.batch else "depth_workers"
    reads = ("column_workers", sharing)
    return [
        enough_threads(threads, reads),
        idle_threads(threads, least, reads),
        *([idle_batch_workers(thin.batches)] if thin.batch else [_depth_rule(thin)]),
    ]


def _depth_rule(thin: Product) -> Rule:
    return Rule(
        "depth_share",
        ("depth_workers",),
        lambda c: (c["depth_workers"] == 1) | (c["depth_workers"] * CHUNK_UNIT <= thin.terms),
        lambda c: (
            f"{c['depth_workers']} workers along {thin.depth} need {CHUNK_UNIT} terms "
            f"each; there are {thin.terms}"
        ),
    )


def _packing_rules(template: Thin) -> list[Rule]:
    thin = template.product
    deep, wide = thin.left_runs_deep, thin.left.dtype != "float32"
    needed = template.dots and not deep
    useful = needed or wide or thin.rows > 1
    name = thin.left.name
    stride = thin.left.stride(thin.row) * thin.left.element.bytes
    ways = rows_without_conflict(template.cpu, stride)
    height = max(1, ways // 2) if deep else thin.rows
    return [
        Rule(
            "left_conflicts",
            ("pack_left", "tile_rows"),
            lambda c: c["pack_left"] | (c["tile_rows"] <= height),
            lambda c: (
                f"{c['tile_rows']} rows of {name} as they lie take more than half of the {ways} "
                "lines of L1 that they compete for, so it must be packed"
            ),
        ),
        Rule(
            "packing_needed",
            ("pack_left",),
            lambda c: c["pack_left"] | (not needed),
            lambda c: f"{name} is not contiguous along {thin.depth}, so it must be packed",
        ),
        Rule(
            "packing_useful",
            ("pack_left",),
            lambda c: np.logical_not(c["pack_left"]) | useful,
            lambda c: f"{name} is one contiguous row already; packing it gains nothing",
        ),
    ]


_EXTENT = {"block_depth": "terms", "block_columns": "columns"}


def _distinct(template: Thin, name: str) -> Rule:
    """Return the rule that, of bounds beyond the product's extent, only the smallest is allowed:
    all mean the same."""
    values = next(d.values for d in template.decisions if d.name == name)
    extent = getattr(template.product, _EXTENT[name])
    most = min((int(v) for v in values if int(v) >= extent), default=int(values[-1]))

    def explain(c: Mapping[str, Any]) -> str:
        return f"{name}={c[name]} is the same as {name}={most}: the product ends at {extent}"

    return Rule(f"distinct_{name}", (name,), lambda c: c[name] <= most, explain)
