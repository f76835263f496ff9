"""What rules out a schedule of a thin product, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from spaces.cpu.memory_rules import PAGE
from spaces.cpu.thin_blocking import CHUNK_UNIT
from spaces.integers import ceil_div, round_up
from spaces.template import Rule

if TYPE_CHECKING:
    from spaces.cpu.thin import Thin

LEAST_CHAINS = 4
"""Independent accumulations below which even a memory-bound loop waits for its FMAs."""
BUSY_CHAINS = 8
"""The same for a loop with a few rows' work for each vector it reads."""
FEW_ROWS = 2
"""Rows up to which memory is all that counts."""
STREAMS = 8
"""Rows of the right operand at a time that hardware is sure to fetch ahead by itself."""
LEAST_DEPTH = 32
"""Terms of a block below which more than :data:`FEW_ROWS` wait for the traffic of their sums."""
LEAST_WORK = 2.0**20
"""Multiply-adds that are worth waking a thread for."""


def thin_rules(template: Thin) -> tuple[Rule, ...]:
    """All rules of a thin template."""
    return (
        *_tile_rules(template),
        *([] if template.dots else _stream_rules(template)),
        *_worker_rules(template),
        *_packing_rules(template),
        *(_distinct(template, d.name) for d in template.decisions if d.name in _EXTENT),
    )


def _tile_reads(template: Thin) -> tuple[str, ...]:
    return ("tile_rows", *(("tile_columns", "unroll") if template.dots else ("tile_vectors",)))


def _tile_rules(template: Thin) -> list[Rule]:
    target, reads = template.cpu, _tile_reads(template)
    widest = round_up(template.product.columns, template.lanes)
    few = template.product.rows <= FEW_ROWS
    chains = min(LEAST_CHAINS if few else BUSY_CHAINS, _most_chains(template, widest))
    most_tiles = 4 if template.dots else 1
    most_tiles *= ceil_div(template.product.rows, (target.vector_registers - 3) // 2)

    def row_tiles(c: Any) -> Any:
        return ceil_div(template.product.rows, c["tile_rows"])

    return [
        Rule(
            "row_tiles",
            ("tile_rows",),
            lambda c: row_tiles(c) <= most_tiles,
            lambda c: (
                f"tiles of {c['tile_rows']} rows would read {template.product.right.name} "
                f"{row_tiles(c)} times; registers leave room for taller ones"
            ),
        ),
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
    ]


def _stream_rules(template: Thin) -> list[Rule]:
    thin = template.product
    fetched = thin.right.bytes <= template.cpu.l2_bytes
    few = thin.rows <= FEW_ROWS
    least = 1 if few else LEAST_DEPTH
    most = STREAMS if few else 2**30
    return [
        Rule(
            "prefetch_streams",
            ("block_depth", "prefetch"),
            lambda c: (c["block_depth"] <= STREAMS) | (c["prefetch"] > 0) | fetched,
            lambda c: (
                f"{c['block_depth']} rows of {thin.right.name} at a time are more streams than "
                f"hardware prefetches ({STREAMS}), so software must"
            ),
        ),
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


def _most_chains(template: Thin, widest: int) -> int:
    """Accumulators of the largest tile that fits the registers and the product."""
    reads = _tile_reads(template)
    choices = {d.name: d.values for d in template.decisions}
    tiles = (
        dict(zip(reads, values, strict=True)) for values in product(*(choices[r] for r in reads))
    )
    return max(
        int(template.chains(tile))
        for tile in tiles
        if template.registers(tile) <= template.cpu.vector_registers
        and template.tile_columns(tile) <= widest
    )


def _worker_rules(template: Thin) -> list[Rule]:
    thin, threads = template.product, template.cpu.threads
    work = float(thin.rows) * thin.columns * thin.terms
    least = threads if work >= threads * LEAST_WORK else 1
    reads = ("column_workers", "depth_workers")
    return [
        Rule(
            "threads",
            reads,
            lambda c: c["column_workers"] * c["depth_workers"] <= threads,
            lambda c: (
                f"{c['column_workers']} times {c['depth_workers']} workers are more than the "
                f"target's {threads} threads"
            ),
        ),
        Rule(
            "idle_threads",
            reads,
            lambda c: c["column_workers"] * c["depth_workers"] >= least,
            lambda c: (
                f"{c['column_workers'] * c['depth_workers']} of {threads} threads would work; "
                f"there is work enough for {least}"
            ),
        ),
        Rule(
            "depth_share",
            ("depth_workers",),
            lambda c: (c["depth_workers"] == 1) | (c["depth_workers"] * CHUNK_UNIT <= thin.terms),
            lambda c: (
                f"{c['depth_workers']} workers along {thin.depth} need {CHUNK_UNIT} terms "
                f"each; there are {thin.terms}"
            ),
        ),
    ]


def _packing_rules(template: Thin) -> list[Rule]:
    thin = template.product
    deep, wide = thin.left_runs_deep, thin.left.dtype != "float32"
    needed = template.dots and not deep
    useful = needed or wide or thin.rows > 1
    name = thin.left.name
    stride = thin.left.stride(thin.row) * thin.left.element.bytes
    ways = template.cpu.l1_bytes // PAGE * (PAGE // gcd(stride, PAGE))
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
    """Bounds beyond the product's extent mean the same: only the smallest of them stays."""
    values = next(d.values for d in template.decisions if d.name == name)
    extent = getattr(template.product, _EXTENT[name])
    most = min((int(v) for v in values if int(v) >= extent), default=int(values[-1]))

    def explain(c: Mapping[str, Any]) -> str:
        return f"{name}={c[name]} is the same as {name}={most}: the product ends at {extent}"

    return Rule(f"distinct_{name}", (name,), lambda c: c[name] <= most, explain)
